//! The formats of stdout.

use clap::ValueEnum;

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a terminal: cut to its width, ids shortened, local time.
    Table,
    /// A table with every column.
    Wide,
    /// Tab-separated with a header, nothing cut.
    Tsv,
    /// One document, in the API's own shape.
    Json,
    /// One item per line.
    Ndjson,
    /// Comma-separated with a header.
    Csv,
    /// Ids only, one per line.
    Id,
}

impl Format {
    /// Returns the format's name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Wide => "wide",
            Self::Tsv => "tsv",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Id => "id",
        }
    }

    /// Returns whether the format is JSON.
    pub fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Ndjson)
    }

    /// Returns whether the format is a table for people.
    pub fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}
