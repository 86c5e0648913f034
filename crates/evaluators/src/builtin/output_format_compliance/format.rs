//! One format of a text: its options and the check of a text.

use std::{borrow::Cow, sync::LazyLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    config::{ConfigProblem, Count, TaggedOptions, one_problem},
    form::{
        WHITESPACE_CHARS, csv, fence, json,
        length::LengthBounds,
        table, xml,
        yaml::{self, Outermost},
    },
    pattern::{Pattern, RegexOptions},
    sentence::{counted, cut},
};

/// Number of characters of an expression that a message repeats.
const MAX_SHOWN_CHARS: usize = 60;

/// The options of one format. They depend on its name and are validated when the format is compiled.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(super) struct FormatOptions(Map<String, Value>);

static FORMAT_OPTIONS: LazyLock<TaggedOptions<FormatConfig>> = LazyLock::new(|| TaggedOptions::new("format"));

impl JsonSchema for FormatOptions {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "FormatOptions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::try_from(FORMAT_OPTIONS.union()).unwrap_or_default()
    }
}

impl FormatOptions {
    /// Returns whether the options name a format.
    pub(super) fn has_format(&self) -> bool {
        self.0.contains_key("format")
    }

    /// Returns the name of an option of one format.
    pub(super) fn own_option(&self) -> Option<&str> {
        self.0.keys().map(String::as_str).find(|it| *it != "threshold")
    }

    /// Compiles the format. `common` is the schema of options that are allowed besides those of the format.
    ///
    /// # Errors
    /// Returns all problems, with paths below the options.
    pub(super) fn compile(self, common: Map<String, Value>) -> Result<Format, Vec<ConfigProblem>> {
        let (name, config) = FORMAT_OPTIONS.parse(&self.0, common)?;
        let rows = |it: Count| it.to_usize();
        let columns = |it: Option<Count>| it.map(Count::to_usize);
        let (kind, extract) = match config {
            FormatConfig::Json(it) => (FormatKind::Json(it.root), it.extract),
            FormatConfig::Yaml(it) => (FormatKind::Yaml(it.root), it.extract),
            FormatConfig::Xml(it) => (FormatKind::Xml { namespaces: it.namespaces }, it.extract),
            FormatConfig::Csv(it) => {
                let delimiter = delimiter(it.delimiter)?;
                let shape =
                    csv::CsvShape { delimiter, header: it.table.header, columns: columns(it.table.columns) };
                (FormatKind::Csv(shape, rows(it.table.min_rows)), it.extract)
            }
            FormatConfig::MarkdownTable(it) => {
                let columns = columns(it.table.columns);
                let shape = table::TableShape { header: it.table.header, columns, ragged: it.ragged };
                (FormatKind::Table(shape, rows(it.table.min_rows)), false)
            }
            FormatConfig::Regex(it) => (FormatKind::Regex(Box::new(it.compile()?), it.pattern), false),
            FormatConfig::Length(it) => (FormatKind::Length(it.checked()?), false),
        };
        Ok(Format { name, kind, extract })
    }
}

/// The format.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "format", rename_all = "snake_case")]
enum FormatConfig {
    Json(DocumentOptions),
    Yaml(DocumentOptions),
    Xml(XmlOptions),
    Csv(CsvOptions),
    MarkdownTable(MarkdownOptions),
    Regex(RegexOptions),
    Length(LengthBounds),
}

#[derive(Deserialize, JsonSchema)]
struct DocumentOptions {
    /// json, yaml: the required type of the outermost value.
    #[serde(default)]
    root: Root,
    /// json, yaml, xml, csv: whether the text may be in a fenced block, exactly one, with words around it.
    #[serde(default)]
    extract: bool,
}

#[derive(Deserialize, JsonSchema)]
struct XmlOptions {
    /// xml: whether every namespace prefix must be bound.
    #[serde(default = "enabled")]
    namespaces: bool,
    /// json, yaml, xml, csv: whether the text may be in a fenced block, exactly one, with words around it.
    #[serde(default)]
    extract: bool,
}

fn enabled() -> bool {
    true
}

#[derive(Deserialize, JsonSchema)]
struct CsvOptions {
    /// csv: the delimiter of fields.
    #[serde(default = "comma")]
    delimiter: char,
    /// json, yaml, xml, csv: whether the text may be in a fenced block, exactly one, with words around it.
    #[serde(default)]
    extract: bool,
    #[serde(flatten)]
    table: TableOptions,
}

fn comma() -> char {
    ','
}

#[derive(Deserialize, JsonSchema)]
struct MarkdownOptions {
    /// markdown_table: whether rows may have more or fewer cells than the header.
    #[serde(default)]
    ragged: bool,
    #[serde(flatten)]
    table: TableOptions,
}

#[derive(Deserialize, JsonSchema)]
struct TableOptions {
    /// csv, markdown_table: the names of the columns, in order.
    #[schemars(length(min = 1, max = 1000))]
    header: Option<Vec<String>>,
    /// csv, markdown_table: the number of columns.
    #[schemars(range(min = 1))]
    columns: Option<Count>,
    /// csv, markdown_table: minimum number of rows, without the `header`.
    #[serde(default)]
    min_rows: Count,
}

/// The required type of the outermost value.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Root {
    #[default]
    Any,
    Object,
    Array,
}

/// Returns the delimiter of fields as a byte.
fn delimiter(character: char) -> Result<u8, Vec<ConfigProblem>> {
    match u8::try_from(character) {
        Ok(byte) if matches!(byte, b'\t' | b' '..=b'~') && byte != b'"' => Ok(byte),
        _ => Err(one_problem("delimiter", "must be one ASCII character other than a quotation mark")),
    }
}

/// A compiled format.
pub(super) struct Format {
    name: &'static str,
    kind: FormatKind,
    extract: bool,
}

enum FormatKind {
    Json(Root),
    Yaml(Root),
    Xml { namespaces: bool },
    Csv(csv::CsvShape, Rows),
    Table(table::TableShape, Rows),
    Regex(Box<Pattern>, String),
    Length(LengthBounds),
}

/// The minimum number of rows.
type Rows = usize;

impl Format {
    /// Returns the approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        match &self.kind {
            FormatKind::Regex(pattern, _) => pattern.bytes(),
            _ => 0,
        }
    }

    /// Returns the name of the format.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the sentence for a text that does not have the format.
    pub(super) fn violation(&self) -> &'static str {
        match self.kind {
            FormatKind::Json(_) => "the text is not JSON of the required format",
            FormatKind::Yaml(_) => "the text is not YAML of the required format",
            FormatKind::Xml { .. } => "the text is not well-formed XML",
            FormatKind::Csv(..) => "the text is not CSV of the required format",
            FormatKind::Table(..) => "the text is not a Markdown table of the required format",
            FormatKind::Regex(..) => "the text does not match the pattern",
            FormatKind::Length(_) => "the length of the text is out of bounds",
        }
    }

    /// Checks that a text has the format.
    ///
    /// # Errors
    /// Returns the reason why the text does not have the format.
    pub(super) fn check(&self, text: &str) -> Result<(), String> {
        let whole = match self.kind {
            // Surrounding whitespace can be part of a match and counts toward the length.
            FormatKind::Regex(..) | FormatKind::Length(_) => text,
            // In CSV, blanks belong to fields and tabs may be delimiters.
            FormatKind::Csv(..) => text.trim_matches(['\n', '\r']),
            // Leading blanks on the first line are indentation, also in YAML.
            FormatKind::Yaml(_) | FormatKind::Table(..) => {
                text.trim_end_matches(WHITESPACE_CHARS).trim_start_matches(['\n', '\r'])
            }
            _ => text.trim_matches(WHITESPACE_CHARS),
        };
        let languages: &[&str] = match self.kind {
            FormatKind::Json(_) => &["json"],
            FormatKind::Yaml(_) => &["yaml", "yml"],
            FormatKind::Xml { .. } => &["xml"],
            FormatKind::Csv(..) => &["csv", "tsv"],
            _ => &[],
        };
        if self.extract
            && let Some(block) = fence::only(text, languages)
        {
            return self.kind.check(block);
        }
        self.kind.check(whole)
    }
}

impl FormatKind {
    fn check(&self, text: &str) -> Result<(), String> {
        let fewer = |rows: usize, least: usize| match rows < least {
            true => Err(format!("it has {}, fewer than {least}", counted(rows, "row", "rows"))),
            false => Ok(()),
        };
        match self {
            Self::Json(root) => {
                json::well_formed(text)?;
                match (root, text.trim_start().as_bytes().first()) {
                    (Root::Object, Some(b'{')) | (Root::Array, Some(b'[')) | (Root::Any, _) => Ok(()),
                    (Root::Object, _) => Err("the outermost value is not an object".into()),
                    (Root::Array, _) => Err("the outermost value is not an array".into()),
                }
            }
            Self::Yaml(root) => {
                let documents = yaml::documents(text)?;
                let required = match root {
                    // A YAML stream of comments contains no document.
                    _ if text.trim_matches(WHITESPACE_CHARS).is_empty() => return Err("it is empty".into()),
                    Root::Any => return Ok(()),
                    Root::Object => Outermost::Mapping,
                    Root::Array => Outermost::Sequence,
                };
                let name = if required == Outermost::Mapping { "a mapping" } else { "a sequence" };
                if !documents.is_empty() && documents.iter().all(|it| *it == required) {
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
            Self::Regex(_, pattern) => Err(cut(pattern, MAX_SHOWN_CHARS).into_owned()),
            Self::Length(bounds) => bounds.violation(text).map_or(Ok(()), Err),
        }
    }
}
