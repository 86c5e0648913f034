//! Dialogs: confirmations and forms before a change, and the secret of a new key.
//!
//! The keys of a dialog are fixed, like those of the line editor; `app::dialog` performs them.

mod form;

use std::{fmt, sync::Arc};

use api::Timestamp;
use uuid::Uuid;

pub use crate::dialog::form::{
    CONFIG_FIELD, Choice, Field, FieldError, FieldName, FieldValue, Form, FormPurpose, METRIC_FIELD,
    PROJECT_FIELD, TYPE_FIELD,
};

use crate::{
    change::Change,
    ids::LoadedIds,
    input::{Input, InputKind},
};

/// Microseconds after opening in which keys are ignored, because they were pressed before the dialog was
/// visible.
pub const GUARD_MICROS: i64 = 300_000;
/// Last characters of an id that have to be typed on a protected context.
const CONFIRMATION_DIGITS: usize = 4;
/// Maximum characters of a note.
const MAX_NOTE_CHARS: usize = 2_000;
/// The position of the note among the fields of a confirmation.
pub const NOTE_FIELD: usize = 0;

/// A dialog.
#[derive(Debug)]
pub struct Dialog {
    /// The content.
    pub body: Body,
    /// Time at which the dialog opened, or last returned to the form.
    pub opened: Timestamp,
    /// Time at which its request was sent, if it was.
    pub sent: Timestamp,
    /// The progress of the request.
    pub phase: Phase,
    /// The element with the focus.
    pub focus: Stop,
    /// The error of the input, or of the server.
    pub complaint: Option<String>,
    /// Whether `ctrl-c` was pressed while the dialog cannot be closed; the next one quits.
    pub interrupted: bool,
}

/// The content of a dialog.
#[derive(Debug)]
pub enum Body {
    /// A confirmation.
    Confirm {
        /// The change.
        change: Arc<dyn Change>,
        /// In a protected context, the characters to type and the ones typed.
        typed: Option<(String, Input)>,
        /// The note, if the change takes one.
        note: Option<Input>,
        /// The first visible line of the excerpt.
        top: usize,
    },
    /// A form.
    Form(Form),
    /// A secret that the server shows once.
    Secret {
        /// The title of the dialog.
        title: &'static str,
        /// The sentence that names the record of the secret.
        sentence: String,
        /// The secret.
        secret: Secret,
        /// Whether the secret is shown.
        shown: bool,
        /// Whether the user confirmed to have stored it.
        stored: bool,
    },
}

/// A secret, which never appears in a log or a record.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The progress of a dialog's request.
#[derive(Clone, Debug)]
pub enum Phase {
    /// The dialog waits for the user.
    Asking,
    /// The request is open.
    Sending {
        /// The change that was sent.
        change: Arc<dyn Change>,
        /// The ids of the records that were loaded.
        before: Vec<Uuid>,
    },
    /// The response was lost, and a list is read to determine whether the change happened.
    Checking {
        /// The change that was sent.
        change: Arc<dyn Change>,
        /// The ids of the records that were loaded when it was sent.
        before: Vec<Uuid>,
        /// The error of the request.
        why: String,
        /// The error of reading the list, if that failed too.
        stuck: Option<String>,
    },
}

/// An element of a dialog that can have the focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A field of a form, by its position.
    Field(usize),
    /// The box to tick.
    Tick,
    /// The button that cancels.
    Cancel,
    /// The button that sends the change, or closes the dialog of a secret.
    Act,
}

impl Dialog {
    /// Returns a dialog that asks to confirm a change. A `protected` context requires characters of the id.
    pub fn confirm(change: impl Change, protected: bool, now: Timestamp) -> Self {
        let change: Arc<dyn Change> = Arc::new(change);
        let id = change.id().map(|id| id.simple().to_string()).filter(|_| protected);
        let typed =
            id.map(|id| (id[id.len() - CONFIRMATION_DIGITS..].to_owned(), Input::new(InputKind::Dialog, "")));
        let note = change.with_note("").map(|_| Input::new(InputKind::Dialog, ""));
        Self::new(Body::Confirm { change, typed, note, top: 0 }, Stop::Cancel, now)
    }

    /// Returns a dialog with a form.
    pub fn form(form: Form, now: Timestamp) -> Self {
        let first = form.first;
        Self::new(Body::Form(form), Stop::Field(first), now)
    }

    /// Returns a dialog that shows the secret of a new record once.
    pub fn secret(title: &'static str, sentence: String, secret: String, now: Timestamp) -> Self {
        let secret = Secret(secret);
        Self::new(Body::Secret { title, sentence, secret, shown: false, stored: false }, Stop::Tick, now)
    }

    fn new(body: Body, focus: Stop, now: Timestamp) -> Self {
        Self {
            body,
            opened: now,
            sent: now,
            phase: Phase::Asking,
            focus,
            complaint: None,
            interrupted: false,
        }
    }

    /// Returns the elements that can have the focus, in their order.
    pub fn stops(&self) -> Vec<Stop> {
        match &self.body {
            Body::Confirm { note: Some(_), .. } => vec![Stop::Field(NOTE_FIELD), Stop::Cancel, Stop::Act],
            Body::Confirm { .. } => vec![Stop::Cancel, Stop::Act],
            Body::Form(form) => {
                let fields = (0..form.fields.len()).map(Stop::Field);
                fields.chain([Stop::Cancel, Stop::Act]).collect()
            }
            Body::Secret { .. } => vec![Stop::Tick, Stop::Act],
        }
    }

    /// Moves the focus to the next or the previous element, wrapping around.
    pub fn step(&mut self, forward: bool) {
        let stops = self.stops();
        let at = stops.iter().position(|stop| *stop == self.focus).unwrap_or(0);
        let by = if forward { 1 } else { stops.len() - 1 };
        self.focus = stops[(at + by) % stops.len()];
    }

    /// Returns whether the button that sends the change can be pressed.
    pub fn armed(&self) -> bool {
        match &self.body {
            Body::Confirm { typed, .. } => {
                typed.as_ref().is_none_or(|(wanted, given)| given.text().eq_ignore_ascii_case(wanted))
            }
            // A form reports its errors when it is sent.
            Body::Form(_) => true,
            Body::Secret { stored, .. } => *stored,
        }
    }

    /// Returns whether letters edit the focused element.
    pub fn types(&self) -> bool {
        match (&self.body, self.focus) {
            (Body::Form(form), Stop::Field(at)) => form.fields.get(at).is_some_and(Field::types),
            (Body::Confirm { note: Some(_), .. }, Stop::Field(_)) => true,
            _ => false,
        }
    }

    /// Returns the line of text with the focus.
    pub fn text_mut(&mut self) -> Option<&mut Input> {
        let focus = self.focus;
        match &mut self.body {
            Body::Form(form) => match focus {
                Stop::Field(at) => form.fields.get_mut(at)?.text_mut(),
                _ => None,
            },
            Body::Confirm { note: Some(note), .. } if matches!(focus, Stop::Field(_)) => Some(note),
            Body::Confirm { typed, .. } => typed.as_mut().map(|(_, given)| given),
            Body::Secret { .. } => None,
        }
    }

    /// Returns the change that the button makes; none on the dialog of a secret.
    ///
    /// # Errors
    /// Fails with the position of the invalid field, and the problem.
    pub fn change(&self, loaded: &LoadedIds) -> Result<Option<Arc<dyn Change>>, FieldError> {
        match &self.body {
            Body::Form(form) => form.purpose.read(form, loaded).map(Some),
            Body::Confirm { change, note, .. } => {
                let note = note.as_ref().map_or("", |note| note.text().trim());
                if note.chars().count() > MAX_NOTE_CHARS {
                    return Err((NOTE_FIELD, format!("the note is longer than {MAX_NOTE_CHARS} characters")));
                }
                Ok(change.with_note(note).or_else(|| Some(Arc::clone(change))))
            }
            Body::Secret { .. } => Ok(None),
        }
    }

    /// Returns whether the dialog waits for the user.
    pub const fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asking)
    }

    /// Returns the title.
    pub fn title(&self) -> &'static str {
        match &self.body {
            Body::Confirm { change, .. } => change.title(),
            Body::Secret { title, .. } => title,
            Body::Form(form) => form.purpose.title(),
        }
    }

    /// Returns to the form or to the confirmation, with an error. The user has to confirm once more.
    pub fn ask_again(&mut self, complaint: String, now: Timestamp) {
        self.phase = Phase::Asking;
        self.complaint = Some(complaint);
        self.opened = now;
        self.focus = match &mut self.body {
            Body::Confirm { typed, .. } => {
                if let Some((_, given)) = typed {
                    given.clear();
                }
                Stop::Cancel
            }
            Body::Form(_) | Body::Secret { .. } => self.stops().first().copied().unwrap_or(Stop::Cancel),
        };
    }
}
