//! Draws the fields of a form, and the hint of the focused field.

use super::{buttons, entry, text};
use crate::{
    dialog::{CONFIG_FIELD, Choice, Dialog, FieldValue, Form, METRIC_FIELD, Stop},
    input::{Input, InputKind},
    shell::Shell,
    theme::Tone,
    widgets::table::Pieces,
};
use present::{
    format::short_id,
    text::{clean, cut},
};

/// Width in columns of the names.
const NAME_COLS: usize = 9;
/// Minimum height of the terminal in rows at which the form has blank lines and a longer hint.
const ROOMY_ROWS: u16 = 24;

pub fn lines(shell: &Shell, dialog: &Dialog, form: &Form, cols: usize) -> Vec<Pieces> {
    let roomy = shell.size.1 >= ROOMY_ROWS;
    let mut lines = Vec::new();
    if let Some((name, id, remark)) = form.purpose.subject() {
        let id = format!("  {}{}", shell.theme.glyphs.ellipsis, short_id(id));
        lines.push(Pieces::new().add(Tone::Strong, clean(name).into_owned()).add(Tone::Dim, id));
        lines.extend(text(Tone::Plain, remark, cols));
        lines.push(Pieces::new());
    }
    for (at, field) in form.fields.iter().enumerate() {
        let focused = dialog.focus == Stop::Field(at);
        let mark = if focused { shell.theme.glyphs.cursor } else { " " };
        let line = Pieces::new()
            .plain(format!("{mark} "))
            .add(Tone::Field, format!("{:<NAME_COLS$} ", field.name.title));
        let value = match &field.value {
            FieldValue::Text(input) => entry(shell, dialog, Stop::Field(at), input, cols),
            FieldValue::Secret(input) => {
                let masked = shell.theme.glyphs.masked.repeat(input.text().chars().count());
                entry(shell, dialog, Stop::Field(at), &Input::new(InputKind::Dialog, &masked), cols)
            }
            FieldValue::Choice(choice) => chosen(shell, choice, focused, cols.saturating_sub(NAME_COLS + 3)),
        };
        lines.push(line.join(value));
    }
    if roomy {
        lines.push(Pieces::new());
    }
    lines.extend(hint(shell, dialog, form, cols, if roomy { 3 } else { 1 }));
    if roomy {
        lines.push(Pieces::new());
    }
    lines.push(buttons(dialog, &["Cancel", form.purpose.verb()]));
    lines
}

/// Returns the hint of the focused field; for the evaluator, the description of the selected one.
fn hint(shell: &Shell, dialog: &Dialog, form: &Form, cols: usize, most: usize) -> Vec<Pieces> {
    let Stop::Field(at) = dialog.focus else { return Vec::new() };
    let Some(field) = form.fields.get(at) else { return Vec::new() };
    let words = match (field.name, &form.about) {
        (METRIC_FIELD, Some(about)) => about.description.clone(),
        (METRIC_FIELD, None) if !shell.evaluators.loaded => match shell.evaluators.error {
            Some(_) => "the evaluators can't be listed; type the name of one".to_owned(),
            None => format!("loading the evaluators{}", shell.theme.glyphs.ellipsis),
        },
        (METRIC_FIELD, None) => "none matches these letters; backspace deletes them".to_owned(),
        (CONFIG_FIELD, Some(about)) if about.options.is_empty() => "JSON; it has no options".to_owned(),
        (CONFIG_FIELD, Some(about)) => format!("JSON with: {}", about.options),
        (name, _) => name.hint.to_owned(),
    };
    let mut lines = text(Tone::Dim, &words, cols);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.pop() {
            lines.push(last.add(Tone::Dim, shell.theme.glyphs.ellipsis).cut(cols, &shell.theme));
        }
    }
    lines
}

/// Returns a choice: the value, its number among all, and the letters that filter them.
fn chosen(shell: &Shell, choice: &Choice, focused: bool, cols: usize) -> Pieces {
    let glyphs = &shell.theme.glyphs;
    let fitting = choice.fitting();
    let typed = choice.typed();
    let shown = match fitting.get(choice.at) {
        Some((_, shown)) if focused => cut(shown, cols.saturating_sub(16), glyphs),
        Some((_, shown)) => cut(shown, cols, glyphs),
        None if choice.open && !typed.is_empty() => cut(typed, cols.saturating_sub(16), glyphs),
        None => glyphs.none.to_owned(),
    };
    if !focused {
        return Pieces::new().plain(shown);
    }
    let line = Pieces::new().add(Tone::Selected, format!("< {shown} >"));
    let line = match fitting.len() {
        0 | 1 if choice.letters.is_none() => line,
        count => line.add(Tone::Dim, format!(" {} of {count}", (choice.at + 1).min(count))),
    };
    let line = match &choice.letters {
        Some(letters) => {
            let (before, after) = letters.around();
            line.plain(format!("  {}", clean(before))).add(Tone::Selected, " ").plain(clean(after))
        }
        None => line,
    };
    line.cut(cols, &shell.theme)
}
