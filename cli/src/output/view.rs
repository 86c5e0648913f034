//! How a person reads a kind of thing: its columns, and its fields for `--fields`.

use serde_json::Value;

use super::cell::{self, Cell, Style};

/// A column of a table.
#[derive(Clone, Copy)]
pub struct Column {
    /// Heading.
    pub head: &'static str,
    /// The field that the machine formats write for it.
    pub field: &'static str,
    /// What the table shows of a row.
    pub show: fn(&Value, &Style) -> Cell,
    /// Only in the format `wide`.
    pub wide: bool,
    /// Text that may be cut when the terminal is narrow.
    pub elastic: bool,
    /// Left out before texts are cut to a few letters.
    pub optional: bool,
    /// Numbers stand right.
    pub right: bool,
    /// Columns that it takes where rows come one by one and can't be measured first.
    pub width: usize,
}

impl Column {
    /// A column as wide as its widest cell.
    pub const fn new(head: &'static str, field: &'static str, show: fn(&Value, &Style) -> Cell) -> Self {
        Self { head, field, show, wide: false, elastic: false, optional: false, right: false, width: 16 }
    }

    /// Only in the format `wide`.
    pub const fn wide(mut self) -> Self {
        self.wide = true;
        self
    }

    /// May be cut.
    pub const fn elastic(mut self) -> Self {
        self.elastic = true;
        self
    }

    /// Left out on a narrow terminal.
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Stands right.
    pub const fn right(mut self) -> Self {
        self.right = true;
        self
    }

    /// Takes this many columns where rows come one by one.
    pub const fn columns(mut self, width: usize) -> Self {
        self.width = width;
        self
    }
}

/// A kind of thing.
pub struct View {
    /// The member of the list document that holds the rows.
    pub plural: &'static str,
    /// The member of a row that identifies it.
    pub id: &'static str,
    /// Columns of the table, from left to right.
    pub columns: &'static [Column],
    /// Every field that `--fields` takes.
    pub fields: &'static [&'static str],
}

/// A column chosen for a table.
pub enum Chosen<'a> {
    /// One of the view.
    Column(&'a Column),
    /// A field named by `--fields`.
    Field(&'a str),
}

impl View {
    /// The columns of a table: those of the view, or one for each field asked for.
    pub fn chosen<'a>(&'a self, fields: &'a [String], wide: bool) -> Vec<Chosen<'a>> {
        if fields.is_empty() {
            return self.columns.iter().filter(|column| wide || !column.wide).map(Chosen::Column).collect();
        }
        fields.iter().map(|field| Chosen::Field(field)).collect()
    }

    /// The fields of the machine formats that have columns.
    pub fn names<'a>(&'a self, fields: &'a [String]) -> Vec<&'a str> {
        if fields.is_empty() {
            // The id leads, as the field that the next command needs.
            let rest = self.columns.iter().map(|column| column.field).filter(|field| *field != self.id);
            let mut names = vec![self.id];
            for field in rest {
                if !names.contains(&field) {
                    names.push(field);
                }
            }
            return names;
        }
        fields.iter().map(String::as_str).collect()
    }
}

impl Chosen<'_> {
    /// Heading.
    pub fn head(&self) -> String {
        match self {
            Self::Column(column) => column.head.to_owned(),
            Self::Field(field) => field.to_uppercase(),
        }
    }

    /// What a row shows.
    pub fn show(&self, row: &Value, style: &Style) -> Cell {
        match self {
            Self::Column(column) => (column.show)(row, style),
            Self::Field(field) => Cell::plain(cell::raw(super::pick::at(row, field))),
        }
    }

    /// Whether it may be cut.
    pub fn elastic(&self) -> bool {
        match self {
            Self::Column(column) => column.elastic,
            Self::Field(_) => true,
        }
    }

    /// Whether it is left out on a narrow terminal.
    pub fn optional(&self) -> bool {
        matches!(self, Self::Column(column) if column.optional)
    }

    /// Whether it stands right.
    pub fn right(&self) -> bool {
        matches!(self, Self::Column(column) if column.right)
    }

    /// Its width where rows come one by one.
    pub fn width(&self) -> usize {
        match self {
            Self::Column(column) => column.width,
            Self::Field(_) => 24,
        }
    }
}
