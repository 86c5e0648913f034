//! CSV according to RFC 4180: quotation marks only around whole fields and doubled inside them, and the same
//! number of fields in each record.
//!
//! Two requirements of the RFC are relaxed, because texts are often changed in transit: lines may end in LF
//! as well as CRLF, and characters beyond ASCII are allowed.

use crate::sentence::counted;

/// The required structure of the records.
#[derive(Clone, Debug)]
pub(crate) struct CsvShape {
    /// The delimiter of fields, an ASCII character.
    pub delimiter: u8,
    /// The required names in the first record, in order.
    pub header: Option<Vec<String>>,
    /// The required number of fields in each record.
    pub columns: Option<usize>,
}

impl Default for CsvShape {
    fn default() -> Self {
        Self { delimiter: b',', header: None, columns: None }
    }
}

/// Returns the number of records, including the header.
///
/// # Errors
/// Returns the reason with its line.
pub(crate) fn records(text: &str, shape: &CsvShape) -> Result<usize, String> {
    if text.is_empty() {
        return Err("it is empty".into());
    }
    let mut reader = CsvReader { bytes: text.as_bytes(), at: 0, line: 1, delimiter: shape.delimiter };
    let (mut count, mut expected) = (0, shape.columns);
    while reader.at < reader.bytes.len() {
        let line = reader.line;
        let mut names = Vec::new();
        let required_header = shape.header.as_ref().filter(|_| count == 0);
        let fields = reader.record(required_header.map(|_| &mut names))?;
        let columns = *expected.get_or_insert(fields);
        if fields != columns {
            return Err(format!(
                "line {line}: the record has {}; {columns} are required",
                counted(fields, "field", "fields")
            ));
        }
        if let Some(required_header) = required_header
            && names.iter().map(Vec::as_slice).ne(required_header.iter().map(String::as_bytes))
        {
            return Err(format!("line {line}: the header is not {}", required_header.join(",")));
        }
        count += 1;
    }
    Ok(count)
}

struct CsvReader<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    delimiter: u8,
}

/// The end of a field.
#[derive(PartialEq)]
enum End {
    Field,
    Record,
}

impl CsvReader<'_> {
    /// Reads a record, appends the texts of its fields to `names` and returns their number.
    fn record(&mut self, mut names: Option<&mut Vec<Vec<u8>>>) -> Result<usize, String> {
        let mut fields = 0;
        loop {
            let from = self.at;
            let quoted = self.bytes.get(from) == Some(&b'"');
            let to = if quoted { self.quoted()? } else { self.plain()? };
            if let Some(names) = names.as_deref_mut() {
                let text = &self.bytes[from..to];
                names.push(if quoted { undoubled(&text[1..text.len() - 1]) } else { text.to_vec() });
            }
            fields += 1;
            if self.end()? == End::Record {
                return Ok(fields);
            }
        }
    }

    /// Returns the end of a field in quotation marks.
    fn quoted(&mut self) -> Result<usize, String> {
        let line = self.line;
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                None => return Err(format!("line {line}: a quoted value is not closed")),
                Some(b'"') if self.bytes.get(self.at + 1) == Some(&b'"') => self.at += 1,
                Some(b'"') => {
                    self.at += 1;
                    return Ok(self.at);
                }
                Some(b'\n') => self.line += 1,
                Some(byte) => self.allowed(*byte)?,
            }
            self.at += 1;
        }
    }

    /// Returns the end of a field without quotation marks.
    fn plain(&mut self) -> Result<usize, String> {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'\n' => break,
                b'\r' if self.bytes.get(self.at + 1) == Some(&b'\n') => break,
                b'\r' => return Err(format!("line {}: a carriage return without a line feed", self.line)),
                byte if *byte == self.delimiter => break,
                b'"' => {
                    let line = self.line;
                    return Err(format!("line {line}: a quotation mark in an unquoted field"));
                }
                byte => self.allowed(*byte)?,
            }
            self.at += 1;
        }
        Ok(self.at)
    }

    fn end(&mut self) -> Result<End, String> {
        let rest = &self.bytes[self.at..];
        let (length, end) = match rest {
            [] => (0, End::Record),
            [b'\n', ..] => (1, End::Record),
            [b'\r', b'\n', ..] => (2, End::Record),
            [byte, ..] if *byte == self.delimiter => (1, End::Field),
            _ => {
                return Err(format!(
                    "line {}: a character after the closing quotation mark of a field",
                    self.line
                ));
            }
        };
        self.at += length;
        self.line += usize::from(length > 0 && end == End::Record);
        Ok(end)
    }

    fn allowed(&self, byte: u8) -> Result<(), String> {
        match byte {
            b'\t' | b'\r' | b' '..=0x7e | 0x80.. => Ok(()),
            _ => Err(format!("line {}: a control character", self.line)),
        }
    }
}

fn undoubled(text: &[u8]) -> Vec<u8> {
    let mut after_quote = false;
    let keep = |byte: &&u8| {
        after_quote = **byte == b'"' && !after_quote;
        !after_quote
    };
    text.iter().filter(keep).copied().collect()
}
