//! Everything the console knows, except what a screen keeps for itself.

use std::collections::{BTreeMap, VecDeque};

use api::{Timestamp, filter::Filter, project::Project, tenant::Me};
use uuid::Uuid;

use crate::{
    content::Reader,
    detail::Detail,
    format::Zone,
    input::Input,
    keymap::Scope,
    list::List,
    msg::{NetError, Query, RateLimit, RequestId},
    theme::Theme,
};

/// Problems that the log keeps.
const PROBLEMS: usize = 50;
/// Microseconds that a toast stays.
const TOAST: i64 = 6_000_000;

/// What the console was started for. Nothing here is secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Address of the server, without a slash at its end.
    pub url: String,
    /// Name of the context in use.
    pub context: Option<String>,
    /// The context is protected.
    pub protected: bool,
    /// Which credential is used, for people: its kind and first characters.
    pub credential: Option<String>,
    /// The environment variable that holds such a credential.
    pub variable: &'static str,
    /// Name or id of the project asked for.
    pub project: Option<String>,
}

/// How the list learns of new traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nothing has been heard of the server yet.
    Connecting,
    /// Over the stream.
    Streaming,
    /// By asking every two seconds.
    Polling,
    /// The server does not answer, or answers that it can't.
    Away {
        /// Since when.
        since: Timestamp,
        /// Attempts made since.
        attempts: u32,
        /// What it answered, if it did.
        status: Option<u16>,
    },
    /// The credential was refused, so nothing is asked until the reader says so.
    Refused(NetError),
}

/// What an open request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Who the credential belongs to.
    Me,
    /// The projects.
    Projects,
    /// The projects to choose from.
    Picker,
    /// The first page of the list.
    First,
    /// An older page.
    More,
    /// What is new.
    Poll,
    /// More of what is new: the first page did not reach the known rows.
    Fill,
    /// The opened trace.
    Trace(Uuid),
    /// More spans of the opened trace.
    Spans(Uuid),
}

/// A problem, as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// When it happened.
    pub at: Timestamp,
    /// What was tried and what came of it.
    pub text: String,
}

/// A short notice in the status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toast {
    /// The notice.
    pub text: String,
    /// It tells of a failure.
    pub bad: bool,
    /// When it goes.
    pub until: Timestamp,
}

/// What lies over the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// The keys; the words narrow them down.
    Help {
        /// First visible line.
        top: usize,
        /// What to show only.
        words: String,
    },
    /// The log of problems.
    Problems {
        /// First visible line.
        top: usize,
    },
    /// The choice of a project.
    Projects {
        /// The tenant's projects; nothing until they are here.
        all: Option<Vec<Project>>,
        /// The row under the cursor; 0 stands for all projects.
        selected: usize,
    },
}

/// A place to come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The screen's digit.
    pub screen: u8,
    /// The opened trace.
    pub trace: Option<Uuid>,
}

/// The filter line.
#[derive(Debug, Default)]
pub struct FilterLine {
    /// The text in force.
    pub text: String,
    /// Texts used before, oldest first.
    pub history: Vec<String>,
    /// What is wrong with the text being edited, and at which character.
    pub error: Option<(usize, String)>,
}

/// Everything.
#[derive(Debug)]
pub struct State {
    /// What the console was started for.
    pub target: Target,
    /// The time, as of the last tick.
    pub now: Timestamp,
    /// Time zone of the reader.
    pub zone: Zone,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Colours and characters.
    pub theme: Theme,
    /// The screen's digit, 1 to 8.
    pub screen: u8,
    /// The list of traces.
    pub list: List,
    /// The opened trace, over screen 1.
    pub detail: Option<Detail>,
    /// The place before this one.
    pub last_place: Option<Place>,
    /// What lies over the screen.
    pub overlay: Option<Overlay>,
    /// The line being edited.
    pub input: Option<Input>,
    /// Keys of an unfinished sequence.
    pub prefix: Option<String>,
    /// The filter line.
    pub filter: FilterLine,
    /// The current notice.
    pub toast: Option<Toast>,
    /// Problems, newest last.
    pub problems: VecDeque<Problem>,
    /// Who the credential belongs to.
    pub me: Option<Me>,
    /// The project shown; nothing means all of them.
    pub project: Option<Project>,
    /// Requests left.
    pub limit: Option<RateLimit>,
    /// How the list learns of new traces.
    pub link: Link,
    /// Why the list could not be loaded, when asking again would not help.
    pub refused_list: Option<NetError>,
    /// When to ask again, if not at once by other means.
    pub next_poll: Option<Timestamp>,
    /// When to try the stream again.
    pub next_stream: Option<Timestamp>,
    /// The open stream's number.
    pub stream: Option<RequestId>,
    /// Open requests; a reply whose number is not here was overtaken.
    pub open: BTreeMap<RequestId, (Purpose, Timestamp)>,
    last_request: RequestId,
}

impl State {
    /// The state before anything happened.
    pub fn new(target: Target, theme: Theme, zone: Zone, now: Timestamp, size: (u16, u16)) -> Self {
        Self {
            target,
            now,
            zone,
            size,
            theme,
            screen: 1,
            list: List::new(),
            detail: None,
            last_place: None,
            overlay: None,
            input: None,
            prefix: None,
            filter: FilterLine::default(),
            toast: None,
            problems: VecDeque::new(),
            me: None,
            project: None,
            limit: None,
            link: Link::Connecting,
            refused_list: None,
            next_poll: None,
            next_stream: None,
            stream: None,
            open: BTreeMap::new(),
            last_request: 0,
        }
    }

    /// Numbers a new request. Open ones for the same purpose are overtaken by it.
    pub fn request(&mut self, purpose: Purpose) -> RequestId {
        self.last_request += 1;
        self.open.retain(|_, (other, _)| std::mem::discriminant(other) != std::mem::discriminant(&purpose));
        self.open.insert(self.last_request, (purpose, self.now));
        self.last_request
    }

    /// Numbers a stream; the one before is overtaken.
    pub fn request_stream(&mut self) -> RequestId {
        self.last_request += 1;
        self.stream = Some(self.last_request);
        self.last_request
    }

    /// Whether a request for this purpose is open.
    pub fn awaits(&self, purpose: impl Fn(&Purpose) -> bool) -> bool {
        self.open.values().any(|(it, _)| purpose(it))
    }

    /// Whether an open request has taken long enough to say so.
    pub fn busy(&self) -> bool {
        let shown = |purpose: &Purpose| !matches!(purpose, Purpose::Poll | Purpose::Fill | Purpose::Me);
        self.open.values().any(|(it, since)| shown(it) && self.now.micros() - since.micros() >= 300_000)
    }

    /// Which traces the list holds. The filter was read before, so it reads again.
    pub fn query(&self) -> Query {
        Query {
            filter: self.parse(&self.filter.text).unwrap_or_default(),
            project: self.project.as_ref().map(|project| project.id),
        }
    }

    /// Reads a filter, with times in the reader's zone.
    ///
    /// # Errors
    /// The character that is wrong, from 0, and what is wrong with it.
    pub fn parse(&self, text: &str) -> Result<Filter, (usize, String)> {
        let now = self.zone.of(self.now);
        Filter::parse(text, &BTreeMap::new(), &now).map_err(|error| {
            let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            (error.column(), format!("{}{hint}", error.message))
        })
    }

    /// Shows a notice for a while.
    pub fn tell(&mut self, text: impl Into<String>) {
        let until = Timestamp::from_micros(self.now.micros() + TOAST);
        self.toast = Some(Toast { text: text.into(), bad: false, until });
    }

    /// Shows a failure for a while and keeps it in the log.
    pub fn complain(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.problems.len() == PROBLEMS {
            self.problems.pop_front();
        }
        self.problems.push_back(Problem { at: self.now, text: text.clone() });
        let until = Timestamp::from_micros(self.now.micros() + TOAST);
        self.toast = Some(Toast { text, bad: true, until });
    }

    /// Where keys are pressed.
    pub fn scope(&self) -> Scope {
        match (&self.overlay, &self.detail, self.screen) {
            (Some(Overlay::Projects { .. }), ..) => Scope::Picker,
            (Some(_), ..) => Scope::Overlay,
            (None, Some(detail), 1) if detail.pane().is_some() => Scope::Pane,
            (None, Some(_), 1) => Scope::Tree,
            (None, None, 1) => Scope::List,
            _ => Scope::Panel,
        }
    }

    /// This place, to come back to.
    pub fn place(&self) -> Place {
        Place { screen: self.screen, trace: self.detail.as_ref().map(|detail| detail.id) }
    }

    /// What text depends on besides the record.
    pub fn reader(&self) -> Reader {
        Reader { glyphs: self.theme.glyphs, zone: self.zone, now: self.now }
    }

    /// The project's name for people: the one shown, else the one asked for.
    pub fn project_name(&self) -> Option<&str> {
        self.project.as_ref().map(|project| project.name.as_str()).or(self.target.project.as_deref())
    }

    /// Whole seconds from now until an instant, at least 0.
    pub fn seconds_until(&self, at: Timestamp) -> i64 {
        (at.micros() - self.now.micros()).max(0).div_euclid(1_000_000)
    }
}
