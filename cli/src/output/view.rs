//! Views: the table columns of a resource and its fields for `--fields`.

use serde_json::Value;

use super::cell::{self, Cell, Style};

/// A column of a table.
#[derive(Clone, Copy)]
pub struct Column {
    /// Heading.
    pub head: &'static str,
    /// The field that the machine formats write for this column.
    pub field: &'static str,
    /// Function that returns the cell of a row.
    pub show: fn(&Value, &Style) -> Cell,
    /// Whether the column is shown only in the format `wide`.
    pub wide: bool,
    /// Whether the column may be cut when the terminal is narrow.
    pub elastic: bool,
    /// Whether the column is left out before other columns are cut to a few characters.
    pub optional: bool,
    /// Whether the column is aligned to the right.
    pub right: bool,
    /// Width in tables whose rows arrive one by one and cannot be measured first.
    pub width: usize,
}

impl Column {
    /// Creates a column that is as wide as its widest cell.
    pub const fn new(head: &'static str, field: &'static str, show: fn(&Value, &Style) -> Cell) -> Self {
        Self { head, field, show, wide: false, elastic: false, optional: false, right: false, width: 16 }
    }

    /// Marks the column as one of the format `wide` only.
    pub const fn wide(mut self) -> Self {
        self.wide = true;
        self
    }

    /// Marks the column as one that may be cut.
    pub const fn elastic(mut self) -> Self {
        self.elastic = true;
        self
    }

    /// Marks the column as one that is left out on a narrow terminal.
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Aligns the column to the right.
    pub const fn right(mut self) -> Self {
        self.right = true;
        self
    }

    /// Sets the width in tables whose rows arrive one by one.
    pub const fn columns(mut self, width: usize) -> Self {
        self.width = width;
        self
    }
}

/// The table and the fields of a resource.
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
pub enum SelectedColumn<'a> {
    /// A column of the view.
    Column(&'a Column),
    /// A field named by `--fields`.
    Field(&'a str),
}

impl View {
    /// Returns the columns of a table: those of the view, or one for each requested field.
    pub fn select_columns<'a>(&'a self, fields: &'a [String], wide: bool) -> Vec<SelectedColumn<'a>> {
        if fields.is_empty() {
            return self
                .columns
                .iter()
                .filter(|column| wide || !column.wide)
                .map(SelectedColumn::Column)
                .collect();
        }
        fields.iter().map(|field| SelectedColumn::Field(field)).collect()
    }

    /// Returns the fields that the machine formats write as columns.
    pub fn names<'a>(&'a self, fields: &'a [String]) -> Vec<&'a str> {
        if fields.is_empty() {
            // The id comes first, because the next command needs it.
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

impl SelectedColumn<'_> {
    /// Returns the heading.
    pub fn head(&self) -> String {
        match self {
            Self::Column(column) => column.head.to_owned(),
            Self::Field(field) => field.to_uppercase(),
        }
    }

    /// Returns the cell of a row.
    pub fn show(&self, row: &Value, style: &Style) -> Cell {
        match self {
            Self::Column(column) => (column.show)(row, style),
            Self::Field(field) => Cell::plain(cell::raw(super::fields::at(row, field))),
        }
    }

    /// Returns whether the column may be cut.
    pub fn elastic(&self) -> bool {
        match self {
            Self::Column(column) => column.elastic,
            Self::Field(_) => true,
        }
    }

    /// Returns whether the column is left out on a narrow terminal.
    pub fn optional(&self) -> bool {
        matches!(self, Self::Column(column) if column.optional)
    }

    /// Returns whether the column is aligned to the right.
    pub fn right(&self) -> bool {
        matches!(self, Self::Column(column) if column.right)
    }

    /// Returns the width in tables whose rows arrive one by one.
    pub fn width(&self) -> usize {
        match self {
            Self::Column(column) => column.width,
            Self::Field(_) => 24,
        }
    }
}
