//! Output of commands: data to stdout in the requested format, everything else to stderr.
//!
//! A command passes JSON as the server sent it and a [`View`] with the columns of its table. The format
//! decides which of them is written. Only this module writes to stdout and stderr.

pub mod cell;
pub mod delimited;
pub mod fields;
pub mod jq;
pub mod json;
pub mod pager;
pub mod progress;
pub mod sheet;
pub mod table;
pub mod text_diff;
pub mod view;
pub mod wrap;

use std::io::{self, Write};

use api::text::printable;
use present::Glyphs;
use serde_json::Value;

use crate::{
    args::GlobalArgs,
    env::Env,
    error::{CliError, Result},
    format::Format,
};
pub use cell::Style;
use pager::Pager;
use progress::{Progress, ProgressTarget};
pub use view::{Column, View};

/// Formats one resource in full for a terminal of this width.
type FormatSheet = fn(&Value, &Style, Option<usize>) -> String;

/// Output of a run: streams, format and display settings.
pub struct Output {
    /// The format of stdout.
    pub format: Format,
    /// Display settings of cells.
    pub style: Style,
    /// Width of the terminal in columns; with `None`, nothing is cut.
    pub columns: Option<usize>,
    fields: Vec<String>,
    jq: Option<jq::Program>,
    raw: bool,
    pretty: bool,
    quiet: bool,
    header_written: bool,
    pager: Option<Pager>,
    progress: ProgressTarget,
    escapes: bool,
    stderr_columns: Option<usize>,
    stdout: Box<dyn Write + Send>,
    stderr: Box<dyn Write + Send>,
}

impl Output {
    /// Creates the output to the process's streams. Fails if the jq program is invalid.
    pub fn of_process(global: &GlobalArgs, env: &Env, format: Format, utc: bool) -> Result<Self> {
        Self::new(global, env, format, utc, Box::new(io::stdout()), Box::new(io::stderr()))
    }

    /// Creates the output to the given streams.
    pub fn new(
        global: &GlobalArgs,
        env: &Env,
        format: Format,
        utc: bool,
        stdout: Box<dyn Write + Send>,
        stderr: Box<dyn Write + Send>,
    ) -> Result<Self> {
        let glyphs = if env.flag("LOUPE_ASCII") { Glyphs::ASCII } else { Glyphs::UNICODE };
        let columns = env.var("COLUMNS").and_then(|columns| columns.parse().ok());
        Ok(Self {
            format,
            style: Style { colour: global.colour(env), glyphs, utc, now: crate::env::now().to_utc().into() },
            columns: env.columns.or(columns).filter(|columns| *columns > 0),
            fields: global.fields.clone(),
            jq: global.jq.as_deref().map(jq::Program::compile).transpose()?,
            raw: global.raw,
            pretty: env.stdout_tty,
            quiet: global.quiet,
            header_written: false,
            pager: Pager::of(global, env),
            progress: progress_target(global, env),
            escapes: env.stdout_tty,
            stderr_columns: env.stderr_columns,
            stdout,
            stderr,
        })
    }

    /// Returns the width in columns of the terminal to which messages are written.
    pub fn stderr_columns(&self) -> Option<usize> {
        self.stderr_columns
    }

    /// Refuses fields of `--fields` that a view does not have; called before any request.
    pub fn check(&self, view: &View) -> Result<()> {
        fields::check(&self.fields, view)
    }

    /// Selects these fields if the command line selects none.
    pub fn set_default_fields(&mut self, fields: Vec<String>) {
        if self.fields.is_empty() {
            self.fields = fields;
        }
    }

    /// Returns whether the output contains inputs and outputs of traces, which must then be complete.
    pub fn shows_texts(&self) -> bool {
        let named = self.fields.iter().any(|field| matches!(field.as_str(), "input" | "output"));
        named || (self.format.is_json() && self.fields.is_empty())
    }

    /// Writes a list: the document as the server sent it, with its rows under `view.plural`.
    pub fn list(&mut self, view: &View, document: Value) -> Result<()> {
        self.check(view)?;
        let rows = document.get(view.plural).and_then(Value::as_array).cloned().unwrap_or_default();
        match self.format {
            Format::Json => self.document(fields::document(document, view, &self.fields)),
            Format::Table | Format::Wide => {
                let columns = view.select_columns(&self.fields, self.format == Format::Wide);
                let text = table::render(&columns, &rows, &self.style, self.columns);
                self.show(&text)
            }
            Format::Tsv | Format::Ndjson | Format::Csv | Format::Id => {
                if matches!(self.format, Format::Tsv | Format::Csv) {
                    self.header(view)?;
                }
                rows.iter().try_for_each(|row| self.row(view, row))
            }
        }
    }

    /// Writes one resource: an object in the JSON formats, otherwise a table with one row.
    pub fn item(&mut self, view: &View, item: &Value) -> Result<()> {
        self.check(view)?;
        match self.format {
            Format::Json => self.document(fields::item(item, &self.fields)),
            _ => self.list(view, serde_json::json!({ view.plural: [item] })),
        }
    }

    /// Writes one resource: in full as a sheet on a terminal, otherwise like [`Self::item`].
    pub fn whole(&mut self, view: &View, item: &Value, sheet: FormatSheet) -> Result<()> {
        if self.format.is_table() && self.fields.is_empty() {
            let text = sheet(item, &self.style, self.columns);
            return self.show(&text);
        }
        self.item(view, item)
    }

    /// Writes and flushes one row of a list of unknown length.
    pub fn row(&mut self, view: &View, row: &Value) -> Result<()> {
        match self.format {
            Format::Json | Format::Ndjson => {
                let pretty = std::mem::replace(&mut self.pretty, false);
                let written = self.document(fields::item(row, &self.fields));
                self.pretty = pretty;
                written
            }
            Format::Table | Format::Wide => {
                let needs_header = !std::mem::replace(&mut self.header_written, true);
                let columns = view.select_columns(&self.fields, self.format == Format::Wide);
                let mut lines = table::fixed_row(&columns, row, &self.style, self.columns);
                if needs_header {
                    lines.insert_str(0, &table::fixed_head(&columns, &self.style, self.columns));
                }
                self.write(&lines)
            }
            Format::Tsv | Format::Csv => {
                self.header(view)?;
                let line = delimited::row(self.format, &view.names(&self.fields), row);
                self.write(&line)
            }
            Format::Id => {
                let id = fields::at(row, view.id).and_then(Value::as_str).unwrap_or_default();
                self.write(&format!("{}\n", printable(id)))
            }
        }
    }

    /// Writes a document as JSON, through the jq program if there is one.
    pub fn json(&mut self, document: &Value) -> Result<()> {
        self.document(fields::item(document, &[]))
    }

    /// Writes a complete text without control characters, through a pager if it is taller than the
    /// terminal.
    pub fn show(&mut self, text: &str) -> Result<()> {
        if self.pager.as_ref().is_some_and(|pager| pager.show(text)) {
            return Ok(());
        }
        self.write(text)
    }

    /// Writes JSON lines unchanged; on a terminal, escapes control characters.
    pub fn lines(&mut self, lines: &[u8]) -> Result<()> {
        if self.escapes {
            return self.write(&json::escape(&String::from_utf8_lossy(lines)));
        }
        self.stdout.write_all(lines)?;
        self.stdout.flush()?;
        Ok(())
    }

    /// Writes a text unchanged, with a line break at its end. On a terminal, control characters become visible.
    pub fn exact_text(&mut self, text: &str) -> Result<()> {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        if self.escapes {
            let lines: String =
                text.lines().map(|line| format!("{}\n", present::text::clean(line))).collect();
            return self.show(&lines);
        }
        self.write(&format!("{text}{end}"))
    }

    /// Starts a progress report of an export in items of a unit. An export to a terminal needs none.
    pub fn progress(&self, unit: &'static str, on_stdout: bool) -> Progress {
        let hidden = on_stdout && self.escapes;
        Progress::new(unit, if hidden { ProgressTarget::Nowhere } else { self.progress }, self.style.glyphs)
    }

    /// Starts a progress report of a wait, or of requests in items of a unit; only on a terminal, not in a
    /// log.
    pub fn waiting(&self, unit: &'static str) -> Progress {
        let is_drawn = self.progress == ProgressTarget::Terminal;
        let target = if is_drawn { ProgressTarget::Terminal } else { ProgressTarget::Nowhere };
        Progress::new(unit, target, self.style.glyphs)
    }

    /// Writes text without control characters.
    pub fn write(&mut self, text: &str) -> Result<()> {
        self.stdout.write_all(text.as_bytes())?;
        self.stdout.flush()?;
        Ok(())
    }

    /// Prints a note to stderr, unless `--quiet` is set.
    pub fn note(&mut self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }

    /// Prints a message to stderr, even with `--quiet`. Keeps line breaks.
    pub fn say(&mut self, text: &str) {
        let lines: String = text.lines().map(|line| format!("{}\n", printable(line))).collect();
        let lines = wrap::wrap_lines(&lines, self.stderr_columns);
        // A failure to write to stderr cannot be reported.
        _ = progress::suspended(|| {
            self.stderr.write_all(lines.as_bytes()).and_then(|()| self.stderr.flush())
        });
    }

    /// Prints a question to stderr, without a line break.
    pub fn ask(&mut self, text: &str) {
        _ = self.stderr.write_all(printable(text).as_bytes()).and_then(|()| self.stderr.flush());
    }

    /// Ends the line of a question whose answer is not echoed.
    pub fn end_question(&mut self) {
        _ = self.stderr.write_all(b"\n");
    }

    fn header(&mut self, view: &View) -> Result<()> {
        if std::mem::replace(&mut self.header_written, true) {
            return Ok(());
        }
        let line = delimited::header(self.format, &view.names(&self.fields));
        // Off a terminal, colour is optional and limited to the header: rows are read by programs.
        if self.style.colour && self.format == Format::Tsv {
            let line = self.style.paint(line.trim_end(), cell::Tone::Strong);
            return self.write(&(line + "\n"));
        }
        self.write(&line)
    }

    fn document(&mut self, document: fields::SelectedFields) -> Result<()> {
        let pretty = self.pretty && self.format != Format::Ndjson;
        let text = match &self.jq {
            None => json::text(&document, pretty).map_err(unwritable)?,
            Some(program) => {
                let input = json::text(&document, false).map_err(unwritable)?;
                program.run(input.trim_end(), self.raw, pretty)?
            }
        };
        if pretty { self.show(&text) } else { self.write(&text) }
    }
}

fn progress_target(global: &GlobalArgs, env: &Env) -> ProgressTarget {
    // Redrawing a line requires control sequences.
    let can_redraw = env.stderr_tty && env.var("TERM").is_some_and(|term| term != "dumb");
    match (global.quiet, can_redraw && !env.flag("CI")) {
        (true, _) => ProgressTarget::Nowhere,
        (false, true) => ProgressTarget::Terminal,
        (false, false) => ProgressTarget::Log,
    }
}

fn unwritable(error: serde_json::Error) -> CliError {
    let why = api::plain::json_error(&error);
    CliError::new(crate::exit::Exit::Unexpected, format!("can't write the JSON: {why}"))
}

/// Prints an error at the end of a run, or before there is an [`Output`].
pub fn error(error: &CliError, as_json: bool) {
    let text = if as_json {
        format!("{}\n", json::escape(&error.json().to_string()))
    } else {
        wrap::wrap_lines(&error.text(), wrap::columns_of_stderr())
    };
    // A failure to write to stderr cannot be reported.
    _ = io::stderr().write_all(text.as_bytes());
}

/// Prints a help text to stdout. A closed pipe is not an error.
pub fn help(text: &str) {
    _ = io::stdout().write_all(text.as_bytes());
}

/// Prints an error of the command line to stderr.
pub fn usage(text: &str) {
    _ = io::stderr().write_all(text.as_bytes());
}

/// Prints a line of text to stderr, from places that have no [`Output`], such as the client's observer.
pub fn trace(text: &str) {
    _ = progress::suspended(|| io::stderr().write_all(format!("{}\n", printable(text)).as_bytes()));
}
