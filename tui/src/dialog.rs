//! Dialogs: confirmations and forms before a change, and the secret of a new key.
//!
//! Its keys are fixed, like those of the line editor. Performing them is `update::dialog`.

mod form;

use std::fmt;

use api::Timestamp;
use uuid::Uuid;

pub use crate::dialog::form::{Choice, Field, Form, FormDefaults, Kind, Name, Value};

use crate::{
    change::Change,
    input::{Input, InputKind},
};

/// Microseconds after opening in which keys are ignored: they were meant for what was there
/// before.
pub const GUARD_MICROS: i64 = 300_000;
/// Last characters of an id that have to be typed on a protected context.
const CONFIRMATION_DIGITS: usize = 4;

/// A dialog.
#[derive(Debug)]
pub struct Dialog {
    /// The content.
    pub body: Body,
    /// When the dialog opened, or last returned to the form.
    pub opened: Timestamp,
    /// When its request was sent, if it was.
    pub sent: Timestamp,
    /// The progress of the request.
    pub phase: Phase,
    /// The element with the focus.
    pub focus: Stop,
    /// The error of the input, or of the server.
    pub complaint: Option<String>,
    /// `ctrl-c` was pressed where it can't simply close; once more quits.
    pub interrupted: bool,
}

/// The content of a dialog.
#[derive(Debug)]
pub enum Body {
    /// Whether to do something.
    Confirm {
        /// The change.
        change: Change,
        /// On a protected context: what has to be typed, and what was.
        typed: Option<(String, Input)>,
    },
    /// A key to be made.
    NewKey {
        /// Its name.
        name: Input,
        /// It may only read.
        query: bool,
        /// The project of its traces; none leaves the choice to the server.
        project: Option<Uuid>,
    },
    /// A project to be made.
    NewProject {
        /// Its name.
        name: Input,
    },
    /// Several lines to fill in.
    Form(Form),
    /// A key that was made.
    Secret {
        /// Its name.
        name: String,
        /// The access of the key, as text.
        access: &'static str,
        /// The key.
        secret: Secret,
        /// It is readable on the screen.
        shown: bool,
        /// The reader has stored it.
        stored: bool,
    },
}

/// The secret of a new key. It is in no log and no record.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The progress of a dialog's request.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// It waits for the reader.
    Asking,
    /// The request is open. `before` are the ids of the list before the change.
    Sending {
        /// The change that was sent.
        change: Change,
        /// Ids of the list that it changes.
        before: Vec<Uuid>,
    },
    /// The answer was lost, and the list is read to see what happened.
    Checking {
        /// The change that was sent.
        change: Change,
        /// Ids of the list as it was before.
        before: Vec<Uuid>,
        /// The error of the request.
        why: String,
        /// The error of reading the list, if that failed too.
        stuck: Option<String>,
    },
}

/// A place in a dialog that the keys can go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The line of text.
    Text,
    /// The access of a new key.
    Access,
    /// The project of a new key.
    Project,
    /// A line of a form, by its number.
    Field(usize),
    /// The box to tick.
    Tick,
    /// The button that leaves everything as it is.
    Cancel,
    /// The button that goes on.
    Act,
}

impl Dialog {
    /// A dialog that asks whether to do something. `protected` asks for characters to be typed.
    pub fn confirm(change: Change, protected: bool, now: Timestamp) -> Self {
        let id = change.id().map(|id| id.simple().to_string()).filter(|_| protected);
        let typed =
            id.map(|id| (id[id.len() - CONFIRMATION_DIGITS..].to_owned(), Input::new(InputKind::Dialog, "")));
        Self::new(Body::Confirm { change, typed }, Stop::Cancel, now)
    }

    /// A dialog that asks for the parts of a new key.
    pub fn new_key(project: Option<Uuid>, now: Timestamp) -> Self {
        let name = Input::new(InputKind::Dialog, "");
        Self::new(Body::NewKey { name, query: false, project }, Stop::Text, now)
    }

    /// A dialog that asks for the name of a new project.
    pub fn new_project(now: Timestamp) -> Self {
        Self::new(Body::NewProject { name: Input::new(InputKind::Dialog, "") }, Stop::Text, now)
    }

    /// A dialog with lines to fill in.
    pub fn form(form: Form, now: Timestamp) -> Self {
        let first = form.first();
        Self::new(Body::Form(form), Stop::Field(first), now)
    }

    /// A dialog that shows the secret of a new key.
    pub fn secret(name: String, access: &'static str, secret: String, now: Timestamp) -> Self {
        let secret = Secret(secret);
        Self::new(Body::Secret { name, access, secret, shown: false, stored: false }, Stop::Tick, now)
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

    /// The places that the keys can go to, in turn.
    pub fn stops(&self) -> Vec<Stop> {
        match &self.body {
            Body::Confirm { .. } => vec![Stop::Cancel, Stop::Act],
            Body::NewKey { .. } => {
                vec![Stop::Text, Stop::Access, Stop::Project, Stop::Cancel, Stop::Act]
            }
            Body::NewProject { .. } => vec![Stop::Text, Stop::Cancel, Stop::Act],
            Body::Form(form) => {
                let fields = (0..form.fields.len()).map(Stop::Field);
                fields.chain([Stop::Cancel, Stop::Act]).collect()
            }
            Body::Secret { .. } => vec![Stop::Tick, Stop::Act],
        }
    }

    /// Moves the focus to the next place or the one before, in turn.
    pub fn step(&mut self, forward: bool) {
        let stops = self.stops();
        let at = stops.iter().position(|stop| *stop == self.focus).unwrap_or(0);
        let by = if forward { 1 } else { stops.len() - 1 };
        self.focus = stops[(at + by) % stops.len()];
    }

    /// Whether the button that goes on may be pressed.
    pub fn armed(&self) -> bool {
        match &self.body {
            Body::Confirm { typed, .. } => {
                typed.as_ref().is_none_or(|(wanted, given)| given.text().eq_ignore_ascii_case(wanted))
            }
            Body::NewKey { name, .. } | Body::NewProject { name } => !name.text().trim().is_empty(),
            // A form reports its errors when it is sent.
            Body::Form(_) => true,
            Body::Secret { stored, .. } => *stored,
        }
    }

    /// Whether the keys are letters of a text.
    pub fn types(&self) -> bool {
        match (&self.body, self.focus) {
            (_, Stop::Text) => true,
            (Body::Form(form), Stop::Field(at)) => form.fields.get(at).is_some_and(Field::types),
            _ => false,
        }
    }

    /// The line of text with the focus; the only one, where there is no other.
    pub fn text_mut(&mut self) -> Option<&mut Input> {
        let focus = self.focus;
        match &mut self.body {
            Body::Form(form) => match focus {
                Stop::Field(at) => form.fields.get_mut(at)?.text_mut(),
                _ => None,
            },
            Body::Confirm { typed, .. } => typed.as_mut().map(|(_, given)| given),
            Body::NewKey { name, .. } | Body::NewProject { name } => Some(name),
            Body::Secret { .. } => None,
        }
    }

    /// What the button that goes on does; nothing on the dialog of a secret. A form is read with
    /// [`Form::change`].
    pub fn change(&self) -> Option<Change> {
        match &self.body {
            Body::Form(_) => None,
            Body::Confirm { change, .. } => Some(change.clone()),
            Body::NewKey { name, query, project } => {
                let name = name.text().trim().to_owned();
                Some(Change::CreateKey { name, query: *query, project: *project })
            }
            Body::NewProject { name } => Some(Change::CreateProject { name: name.text().trim().to_owned() }),
            Body::Secret { .. } => None,
        }
    }

    /// Returns the title.
    pub fn title(&self) -> &'static str {
        match &self.body {
            Body::Confirm { change, .. } => change.title(),
            Body::NewKey { .. } | Body::Secret { .. } => "New API key",
            Body::NewProject { .. } => "New project",
            Body::Form(form) => form.kind.title(),
        }
    }

    /// Returns to the form, with an error.
    pub fn ask_again(&mut self, complaint: String, now: Timestamp) {
        self.phase = Phase::Asking;
        self.complaint = Some(complaint);
        self.opened = now;
        self.focus = self.stops().first().copied().unwrap_or(Stop::Cancel);
    }
}
