//! The filter line, find, and the words that narrow help down.

use api::{
    filter::{FIELDS, Saved, when::Clock},
    project::Project,
};
use crossterm::event::KeyEvent;

use crate::{
    evals::Evals,
    input::{Edit, Input, Purpose},
    msg::Effect,
    state::{EVALS, Overlay, State},
};

use super::{evals, network, rules, search};

/// Filters that are remembered.
const HISTORY: usize = 100;

/// Opens an input line for a text.
pub(super) fn begin(state: &mut State, input: Input) {
    state.filter.error = None;
    state.filter.refused = false;
    state.input = Some(input);
}

/// Opens the filter line on an invalid text, with the error below it.
pub(super) fn refuse(state: &mut State, text: &str, error: (usize, String)) {
    begin(state, Input::new(Purpose::Filter, text));
    state.filter.error = Some(error);
    state.filter.refused = true;
}

pub(super) fn start_find(state: &mut State) {
    let words = match (&state.overlay, &state.detail) {
        (Some(Overlay::Help { words, .. }), _) => {
            state.input = Some(Input::new(Purpose::Help, words));
            return;
        }
        (Some(_), _) => return,
        (None, _) if state.screen == EVALS => state.evals.find().map(str::to_owned),
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
    let history = match input.purpose {
        Purpose::Filter => state.filter.history.as_slice(),
        Purpose::Search => state.search.history.as_slice(),
        Purpose::EvalFilter => state.evals.history.as_slice(),
        _ => &[],
    };
    match input.key(key, history) {
        Edit::Stay => changed(state),
        Edit::Complete => {
            let note = match input.purpose {
                Purpose::Filter => complete(input, &filter_words(&state.saved)),
                Purpose::Search => complete(input, &search_words(state.manage.projects.items.as_slice())),
                Purpose::EvalFilter => complete(input, &eval_words(&state.evals)),
                _ => None,
            };
            changed(state);
            if let Some(note) = note {
                state.tell(note);
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
        Purpose::Filter | Purpose::EvalFilter | Purpose::Search => check(state),
        Purpose::Why => state.filter.error = None,
        Purpose::Find => {
            let words = Some(input.text().trim().to_lowercase()).filter(|words| !words.is_empty());
            look_for(state, words);
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

/// Checks a filter during typing. A term's error appears once the cursor has left the term; after Enter was
/// pressed on an invalid text, at every change until the text is valid.
fn check(state: &mut State) {
    let Some(input) = &state.input else { return };
    let (text, (before, _)) = (input.text(), input.around());
    let clock = Clock::of(&state.zone.of(state.now));
    let error = match input.purpose {
        Purpose::Filter => state.parse(text).err(),
        Purpose::EvalFilter => crate::evals::Line::parse(text, &clock).err(),
        // A search without words is unfinished, not wrong.
        _ if state.filter.refused => crate::search::Line::parse(text, &clock).err(),
        _ => None,
    };
    let left = |at: usize| {
        let typed = || before.chars().skip(at);
        typed().any(char::is_whitespace) && typed().filter(|c| *c == '"').count().is_multiple_of(2)
    };
    let shown = error.clone().filter(|(at, _)| state.filter.refused || left(*at));
    state.filter.refused &= error.is_some();
    state.filter.error = shown;
}

fn cancel(state: &mut State) {
    let Some(input) = state.input.take() else { return };
    state.filter.error = None;
    if input.purpose == Purpose::Find {
        look_for(state, None);
    }
}

/// Looks for words, in lower case, in what is on the screen; for none, nothing is looked for.
fn look_for(state: &mut State, words: Option<String>) {
    match &mut state.detail {
        _ if state.screen == EVALS => state.evals.set_find(words),
        Some(detail) => detail.find = words,
        None => state.list.set_find(words),
    }
}

fn accept(state: &mut State) -> Vec<Effect> {
    let Some(input) = state.input.take() else { return Vec::new() };
    state.filter.error = None;
    match input.purpose {
        Purpose::Help | Purpose::Palette | Purpose::Dialog => Vec::new(),
        Purpose::Export => export(state, input.text().trim()),
        Purpose::Find => {
            let first = match &state.detail {
                _ if state.screen == EVALS => {
                    state.evals.find().is_none() || state.evals.hit(state.evals.selected)
                }
                Some(detail) => {
                    let at = detail.pane().map_or(detail.selected, |pane| pane.cursor);
                    detail.find.as_deref().is_none_or(|needle| detail.hit(at, needle))
                }
                None => state.list.find().is_none() || state.list.hit(state.list.selected()),
            };
            if first { Vec::new() } else { super::act(state, crate::keymap::Action::FindNext) }
        }
        Purpose::EvalFilter => {
            let text = input.text().trim().to_owned();
            match evals::run(state, &text) {
                Err(error) => {
                    state.filter.error = Some(error);
                    state.filter.refused = true;
                    state.input = Some(input);
                    Vec::new()
                }
                Ok(effects) => {
                    remember(&mut state.evals.history, &text);
                    effects
                }
            }
        }
        Purpose::Why => {
            let text = input.text().trim().to_owned();
            rules::why(state, &text).unwrap_or_else(|error| {
                state.filter.error = Some(error);
                state.input = Some(input);
                Vec::new()
            })
        }
        Purpose::Search => {
            let text = input.text().trim().to_owned();
            match search::run(state, &text) {
                Err(error) => {
                    state.filter.error = Some(error);
                    state.filter.refused = true;
                    state.input = Some(input);
                    Vec::new()
                }
                Ok(effects) => {
                    remember(&mut state.search.history, &text);
                    effects
                }
            }
        }
        Purpose::Filter => {
            let text = input.text().trim().to_owned();
            match state.parse(&text) {
                Err(error) => {
                    state.filter.error = Some(error);
                    state.filter.refused = true;
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

/// A word of a line, and what to tell of it once it can't be completed further.
struct Word {
    text: String,
    help: String,
}

/// What a filter is made of: fields, their values and the names of saved filters.
fn filter_words(saved: &Saved) -> Vec<Word> {
    let fields = FIELDS.iter().flat_map(|field| {
        let help = format!("{}: for example {}", field.help, field.example);
        field_words(field.name, field.values.iter().copied(), &help)
    });
    let saved = saved.keys().map(|name| Word { text: format!("@{name}"), help: String::new() });
    fields.chain(saved).collect()
}

/// What narrows a search down: fields, their values and the names of projects.
fn search_words(projects: &[Project]) -> Vec<Word> {
    let names = || projects.iter().map(|project| project.name.as_str()).filter(|it| !it.contains(' '));
    let fields = crate::search::FIELDS.iter().flat_map(|field| {
        let values = field.values.iter().copied();
        let named: Vec<&str> =
            if field.name == "project" { values.chain(names()).collect() } else { values.collect() };
        field_words(field.name, named, field.help)
    });
    fields.collect()
}

/// What the filter of evaluations is made of: fields, their values and the evaluators.
fn eval_words(evals: &Evals) -> Vec<Word> {
    let loaded = evals.rows.iter().map(|row| row.metric_name.as_str());
    let mut metrics: Vec<&str> =
        evals.evaluators.items.iter().map(|it| it.name.as_str()).chain(loaded).collect();
    metrics.sort_unstable();
    metrics.dedup();
    let fields = crate::evals::FIELDS.iter().flat_map(|field| {
        let values: Vec<&str> = if field.name == "metric" { metrics.clone() } else { field.values.to_vec() };
        field_words(field.name, values, field.help)
    });
    fields.collect()
}

/// A field, and the field with each of its values.
fn field_words<'a>(name: &str, values: impl IntoIterator<Item = &'a str>, help: &str) -> Vec<Word> {
    let word = |value: &str| Word { text: format!("{name}:{value}"), help: help.to_owned() };
    std::iter::once(word("")).chain(values.into_iter().map(word)).collect()
}

/// Completes the word before the cursor: to a field, and then to one of its values. When
/// several fit, the word grows as far as they agree and they are named.
fn complete(input: &mut Input, words: &[Word]) -> Option<String> {
    let (before, _) = input.around();
    let start = before.rfind(' ').map_or(0, |at| at + 1);
    let word = before[start..].to_owned();
    let valued = |it: &&Word| !it.text.ends_with(':');
    let candidates = words.iter().filter(|it| valued(it) == (word.contains(':') || word.starts_with('@')));
    let fitting: Vec<&str> =
        candidates.map(|it| it.text.as_str()).filter(|it| it.starts_with(&word)).collect();
    let [first, rest @ ..] = fitting.as_slice() else {
        let (name, _) = word.split_once(':')?;
        let field = words.iter().find(|it| it.text.strip_suffix(':') == Some(name))?;
        return Some(field.help.clone());
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
        assert_eq!(complete(&mut input, &filter_words(&Saved::new())), None);
        assert_eq!(input.text(), "model:x latency:");
        let mut input = Input::new(Purpose::Filter, "failure:ti");
        complete(&mut input, &filter_words(&Saved::new()));
        assert_eq!(input.text(), "failure:timeout ");
        let mut input = Input::new(Purpose::Filter, "@s");
        complete(&mut input, &filter_words(&[("slow".to_owned(), "latency:>=5s".to_owned())].into()));
        assert_eq!(input.text(), "@slow ");
        let mut input = Input::new(Purpose::Filter, "t");
        assert!(
            complete(&mut input, &filter_words(&Saved::new()))
                .is_some_and(|it| it.contains("tag:") && it.contains("tokens:"))
        );
    }
}
