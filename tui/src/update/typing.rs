//! The filter line, find, and the words that narrow help down.

use api::filter::{FIELDS, Saved};
use crossterm::event::KeyEvent;

use crate::{
    input::{Edit, Input, Purpose},
    msg::Effect,
    state::{Overlay, State},
};

use super::network;

/// Filters that are remembered.
const HISTORY: usize = 100;

pub(super) fn start_find(state: &mut State) {
    let words = match (&state.overlay, &state.detail) {
        (Some(Overlay::Help { words, .. }), _) => {
            state.input = Some(Input::new(Purpose::Help, words));
            return;
        }
        (Some(_), _) => return,
        (None, Some(detail)) => detail.find.clone(),
        (None, None) => state.list.find().map(str::to_owned),
    };
    state.input = Some(Input::new(Purpose::Find, words.as_deref().unwrap_or("")));
}

pub(super) fn paste(state: &mut State, text: &str) {
    if let Some(input) = &mut state.input {
        input.insert(text.trim());
        changed(state);
    }
}

pub(super) fn key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let Some(input) = &mut state.input else { return Vec::new() };
    if input.purpose == Purpose::Palette {
        return super::palette::key(state, key);
    }
    let history = if input.purpose == Purpose::Filter { state.filter.history.as_slice() } else { &[] };
    match input.key(key, history) {
        Edit::Stay => changed(state),
        Edit::Complete => {
            if input.purpose == Purpose::Filter {
                let note = complete(input, &state.saved);
                changed(state);
                if let Some(note) = note {
                    state.tell(note);
                }
            }
        }
        Edit::Cancel => cancel(state),
        Edit::Accept => return accept(state),
    }
    Vec::new()
}

/// What depends on the text while it is typed.
fn changed(state: &mut State) {
    let Some(input) = &state.input else { return };
    match input.purpose {
        // The complaint comes with Enter; while the text is being mended it would be wrong.
        Purpose::Filter => state.filter.error = None,
        Purpose::Find => {
            let words = Some(input.text().trim().to_lowercase()).filter(|words| !words.is_empty());
            match &mut state.detail {
                Some(detail) => detail.find = words,
                None => state.list.set_find(words),
            }
        }
        Purpose::Help => {
            let typed = input.text().to_lowercase();
            if let Some(Overlay::Help { top, words }) = &mut state.overlay {
                *words = typed;
                *top = 0;
            }
        }
        Purpose::Palette => {
            if let Some(Overlay::Palette { selected }) = &mut state.overlay {
                *selected = 0;
            }
        }
        Purpose::Export | Purpose::Dialog => {}
    }
}

fn cancel(state: &mut State) {
    let Some(input) = state.input.take() else { return };
    state.filter.error = None;
    if input.purpose == Purpose::Find {
        match &mut state.detail {
            Some(detail) => detail.find = None,
            None => state.list.set_find(None),
        }
    }
}

fn accept(state: &mut State) -> Vec<Effect> {
    let Some(input) = state.input.take() else { return Vec::new() };
    match input.purpose {
        Purpose::Help | Purpose::Palette | Purpose::Dialog => Vec::new(),
        Purpose::Export => export(state, input.text().trim()),
        Purpose::Find => {
            let first = match &state.detail {
                Some(detail) => {
                    let at = detail.pane().map_or(detail.selected, |pane| pane.cursor);
                    detail.find.as_deref().is_none_or(|needle| detail.hit(at, needle))
                }
                None => state.list.find().is_none() || state.list.hit(state.list.selected()),
            };
            if first { Vec::new() } else { super::act(state, crate::keymap::Action::FindNext) }
        }
        Purpose::Filter => {
            let text = input.text().trim().to_owned();
            match state.parse(&text) {
                Err(error) => {
                    state.filter.error = Some(error);
                    state.input = Some(input);
                    Vec::new()
                }
                Ok(filter) => {
                    remember(&mut state.filter.history, &text);
                    if let Some(note) = filter.note() {
                        state.tell(note);
                    }
                    if text == state.filter.text { Vec::new() } else { network::set_filter(state, text) }
                }
            }
        }
    }
}

/// Writes what is shown to a file.
fn export(state: &mut State, path: &str) -> Vec<Effect> {
    let Some((rows, text)) = crate::export::content(state, path).filter(|_| !path.is_empty()) else {
        state.tell("nothing was written");
        return Vec::new();
    };
    let told = format!("wrote {path}: {rows} loaded, {} bytes", text.len());
    vec![Effect::Write { path: path.to_owned(), text, told }]
}

fn remember(history: &mut Vec<String>, text: &str) {
    if text.is_empty() {
        return;
    }
    history.retain(|known| known != text);
    history.push(text.to_owned());
    if history.len() > HISTORY {
        history.remove(0);
    }
}

/// Completes the word before the cursor to a field, a field's value or a saved filter. When
/// several fit, the word grows as far as they agree and they are named.
fn complete(input: &mut Input, saved: &Saved) -> Option<String> {
    let (before, _) = input.around();
    let start = before.rfind(' ').map_or(0, |at| at + 1);
    let word = before[start..].to_owned();
    let candidates: Vec<String> = match word.split_once(':') {
        None if word.starts_with('@') => saved.keys().map(|name| format!("@{name}")).collect(),
        None => FIELDS.iter().map(|field| format!("{}:", field.name)).collect(),
        Some((name, _)) => FIELDS
            .iter()
            .filter(|field| field.name == name)
            .flat_map(|field| field.values.iter().map(move |value| format!("{name}:{value}")))
            .collect(),
    };
    let fitting: Vec<&str> =
        candidates.iter().map(String::as_str).filter(|it| it.starts_with(&word)).collect();
    let [first, rest @ ..] = fitting.as_slice() else {
        let field = word.split_once(':').and_then(|(name, _)| FIELDS.iter().find(|field| field.name == name));
        return field.map(|field| format!("{}: for example {}", field.help, field.example));
    };
    let shared = rest.iter().fold(first.len(), |shared, other| {
        first.bytes().zip(other.bytes()).take(shared).take_while(|(a, b)| a == b).count()
    });
    input.replace_from(start, &first[..shared]);
    if rest.is_empty() && !first.ends_with(':') {
        input.insert(" ");
    }
    (!rest.is_empty()).then(|| fitting.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tab_completes_fields_and_values() {
        let mut input = Input::new(Purpose::Filter, "model:x lat");
        assert_eq!(complete(&mut input, &Saved::new()), None);
        assert_eq!(input.text(), "model:x latency:");
        let mut input = Input::new(Purpose::Filter, "failure:ti");
        complete(&mut input, &Saved::new());
        assert_eq!(input.text(), "failure:timeout ");
        let mut input = Input::new(Purpose::Filter, "@s");
        complete(&mut input, &[("slow".to_owned(), "latency:>=5s".to_owned())].into());
        assert_eq!(input.text(), "@slow ");
        let mut input = Input::new(Purpose::Filter, "t");
        assert!(
            complete(&mut input, &Saved::new())
                .is_some_and(|it| it.contains("tag:") && it.contains("tokens:"))
        );
    }
}
