//! One format of a text: its options and the check of a text.

use serde_json::{Map, Value};

use crate::{
    definition::ConfigProblem,
    form::{
        BLANKS, csv, fence, json,
        length::Lengths,
        table, xml,
        yaml::{self, Outermost},
    },
    pattern::{Pattern, PatternOptions},
    sentence::{counted, cut},
};

/// The names of the supported formats.
pub(super) const NAMES: [&str; 7] = ["json", "yaml", "xml", "csv", "markdown_table", "regex", "length"];

/// A format with its options.
pub(super) struct Form {
    name: &'static str,
    kind: Kind,
    extract: bool,
}

enum Kind {
    Json(Root),
    Yaml(Root),
    Xml { namespaces: bool },
    Csv(csv::Shape, Rows),
    Table(table::Shape, Rows),
    Regex(Box<Pattern>, String),
    Length(Lengths),
}

/// The required type of the outermost value.
#[derive(Clone, Copy)]
enum Root {
    Any,
    Object,
    Array,
}

/// The minimum number of rows.
type Rows = usize;

impl Form {
    /// Parses the options of a format. `common` are names of options that are allowed besides those of the
    /// format.
    pub(super) fn of(options: &Map<String, Value>, common: &[&str]) -> Result<Self, Vec<ConfigProblem>> {
        let one = |field: &str, message: String| vec![ConfigProblem::new(field, message)];
        let named = options.get("format").and_then(Value::as_str);
        let Some(name) = NAMES.into_iter().find(|it| Some(*it) == named) else {
            return Err(one("format", format!("must be one of {}", NAMES.join(", "))));
        };
        let own: &[&str] = match name {
            "json" | "yaml" => &["root", "extract"],
            "xml" => &["namespaces", "extract"],
            "csv" => &["delimiter", "header", "columns", "min_rows", "extract"],
            "markdown_table" => &["header", "columns", "min_rows", "ragged"],
            "regex" => &["pattern", "full_match", "case_insensitive"],
            _ => &["min_chars", "max_chars", "min_words", "max_words"],
        };
        let known = |it: &str| it == "format" || own.contains(&it) || common.contains(&it);
        if let Some(other) = options.keys().find(|it| !known(it)) {
            return Err(one(other, format!("is not an option of {name}; options are {}", own.join(", "))));
        }
        let flag = |name: &str| options.get(name).and_then(Value::as_bool);
        let count = |name: &str| options.get(name).and_then(Value::as_u64).map(|it| it as usize);
        let rows = count("min_rows").unwrap_or(0);
        let header = || {
            Some(
                options
                    .get("header")?
                    .as_array()?
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            )
        };
        let kind = match name {
            "json" => Kind::Json(root(options)),
            "yaml" => Kind::Yaml(root(options)),
            "xml" => Kind::Xml { namespaces: flag("namespaces").unwrap_or(true) },
            "csv" => {
                let delimiter = options.get("delimiter").and_then(Value::as_str).unwrap_or(",");
                let delimiter = match delimiter.as_bytes() {
                    [byte] if matches!(byte, b'\t' | b' '..=b'~') && *byte != b'"' => *byte,
                    _ => {
                        return Err(one(
                            "delimiter",
                            "must be one ASCII character other than a quotation mark".into(),
                        ));
                    }
                };
                Kind::Csv(csv::Shape { delimiter, header: header(), columns: count("columns") }, rows)
            }
            "markdown_table" => {
                let ragged = flag("ragged").unwrap_or(false);
                Kind::Table(table::Shape { header: header(), columns: count("columns"), ragged }, rows)
            }
            "regex" => {
                let Some(pattern) = options.get("pattern").and_then(Value::as_str) else {
                    return Err(one("pattern", "is required: the regular expression".into()));
                };
                let on = |name| flag(name).unwrap_or(false);
                let how =
                    PatternOptions { full_match: on("full_match"), case_insensitive: on("case_insensitive") };
                let compiled = Pattern::compile(pattern, how).map_err(|it| one("pattern", it))?;
                Kind::Regex(Box::new(compiled), pattern.to_owned())
            }
            _ => Kind::Length(Lengths::of(options)?),
        };
        Ok(Self { name, kind, extract: flag("extract").unwrap_or(false) })
    }

    /// Returns the approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        match &self.kind {
            Kind::Regex(pattern, _) => pattern.bytes(),
            _ => 0,
        }
    }

    /// Returns the name of the format.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the sentence for a text that does not have the format.
    pub(super) fn says(&self) -> &'static str {
        match self.kind {
            Kind::Json(_) => "the text is not JSON of the required form",
            Kind::Yaml(_) => "the text is not YAML of the required form",
            Kind::Xml { .. } => "the text is not well-formed XML",
            Kind::Csv(..) => "the text is not CSV of the required form",
            Kind::Table(..) => "the text is not a Markdown table of the required form",
            Kind::Regex(..) => "the text does not match the pattern",
            Kind::Length(_) => "the length of the text is out of bounds",
        }
    }

    /// Checks that a text has the format.
    ///
    /// # Errors
    /// The reason why the text does not have the format.
    pub(super) fn holds(&self, text: &str) -> Result<(), String> {
        let whole = match self.kind {
            // Surrounding whitespace can be part of a match and counts toward the length.
            Kind::Regex(..) | Kind::Length(_) => text,
            // In CSV, blanks belong to fields and tabs may be delimiters.
            Kind::Csv(..) => text.trim_matches(['\n', '\r']),
            // Leading blanks on the first line are indentation, also in YAML.
            Kind::Yaml(_) | Kind::Table(..) => text.trim_end_matches(BLANKS).trim_start_matches(['\n', '\r']),
            _ => text.trim_matches(BLANKS),
        };
        let languages: &[&str] = match self.kind {
            Kind::Json(_) => &["json"],
            Kind::Yaml(_) => &["yaml", "yml"],
            Kind::Xml { .. } => &["xml"],
            Kind::Csv(..) => &["csv", "tsv"],
            _ => &[],
        };
        if self.extract
            && let Some(block) = fence::only(text, languages)
        {
            return self.kind.holds(block);
        }
        self.kind.holds(whole)
    }
}

fn root(options: &Map<String, Value>) -> Root {
    match options.get("root").and_then(Value::as_str) {
        Some("object") => Root::Object,
        Some("array") => Root::Array,
        _ => Root::Any,
    }
}

impl Kind {
    fn holds(&self, text: &str) -> Result<(), String> {
        let fewer = |rows: usize, least: usize| match rows < least {
            true => Err(format!("it has {}, fewer than {least}", counted(rows, "row", "rows"))),
            false => Ok(()),
        };
        match self {
            Self::Json(root) => {
                json::well_formed(text)?;
                match (root, text.trim_start().as_bytes().first()) {
                    (Root::Object, Some(b'{')) | (Root::Array, Some(b'[')) | (Root::Any, _) => Ok(()),
                    (Root::Object, _) => Err("the outermost value is no object".into()),
                    (Root::Array, _) => Err("the outermost value is no array".into()),
                }
            }
            Self::Yaml(root) => {
                let documents = yaml::documents(text)?;
                let wanted = match root {
                    // A YAML stream of comments contains no document.
                    _ if text.trim_matches(BLANKS).is_empty() => return Err("it holds nothing".into()),
                    Root::Any => return Ok(()),
                    Root::Object => Outermost::Mapping,
                    Root::Array => Outermost::Sequence,
                };
                let name = if wanted == Outermost::Mapping { "a mapping" } else { "a sequence" };
                if !documents.is_empty() && documents.iter().all(|it| *it == wanted) {
                    Ok(())
                } else {
                    Err(format!("the outermost value is not {name}"))
                }
            }
            Self::Xml { namespaces } => xml::well_formed(text, *namespaces),
            Self::Csv(shape, least) => {
                let records = csv::records(text, shape)?;
                fewer(records - usize::from(shape.header.is_some() && records > 0), *least)
            }
            Self::Table(shape, least) => fewer(table::rows(text, shape)?, *least),
            Self::Regex(compiled, _) if compiled.is_match(text).unwrap_or(false) => Ok(()),
            Self::Regex(_, pattern) => Err(cut(pattern, 60).into_owned()),
            Self::Length(lengths) => lengths.fails(text).map_or(Ok(()), Err),
        }
    }
}
