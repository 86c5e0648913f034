//! Everything the console knows, except what a screen keeps for itself.

mod parts;

use std::collections::{BTreeMap, VecDeque};

use api::{
    Timestamp,
    filter::{Filter, Saved},
    project::{Project, ProjectStatus},
    tenant::Me,
};

pub use parts::{FilterLine, Link, Older, Outage, Overlay, Place, Problem, Purpose, Toast};

use crate::{
    bookmarks::Bookmarks,
    content::Reader,
    detail::Detail,
    dialog::Dialog,
    evals::{Evals, Part},
    format::Zone,
    input::Input,
    keymap::{Action, Keymap, Scope, key_label},
    layout,
    list::List,
    manage::Manage,
    metrics::Metrics,
    msg::{NetError, Query, RateLimit, RequestId},
    options::Target,
    search::Search,
    theme::Theme,
};

/// Problems that the log keeps.
const PROBLEMS: usize = 50;
/// The digit of Evals.
pub const EVALS: u8 = 2;
/// The digit of Metrics.
pub const METRICS: u8 = 3;
/// The digit of Search.
pub const SEARCH: u8 = 8;
/// The digit of Keys & Projects.
pub const MANAGE: u8 = 7;
/// Microseconds that a toast stays.
const TOAST: i64 = 6_000_000;

/// Everything.
#[derive(Debug)]
pub struct State {
    /// The server, and what goes with it.
    pub target: Target,
    /// Traces that the reader marked.
    pub bookmarks: Bookmarks,
    /// Where else to go.
    pub contexts: Vec<Target>,
    /// The keys in force.
    pub keymap: Keymap,
    /// Saved filters.
    pub saved: Saved,
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
    /// What screen 2 knows.
    pub evals: Evals,
    /// What screen 3 knows.
    pub metrics: Metrics,
    /// What screen 8 knows.
    pub search: Search,
    /// What screen 7 knows.
    pub manage: Manage,
    /// The question or the secret before everything else.
    pub dialog: Option<Dialog>,
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
    /// Who the credential belongs to: the session's, else the key's.
    pub me: Option<Me>,
    /// Why the session was refused, while a key goes on reading.
    pub refused_session: Option<NetError>,
    /// The end of the session was announced.
    pub warned: bool,
    /// The project shown; nothing means all of them.
    pub project: Option<Project>,
    /// Requests left.
    pub limit: Option<RateLimit>,
    /// How the list learns of new traces.
    pub link: Link,
    /// When the server last sent a message about the list.
    pub heard: Option<Timestamp>,
    /// When to ask again, if not at once by other means.
    pub next_poll: Option<Timestamp>,
    /// When to check the identity, the refused session and the current project again.
    pub next_check: Option<Timestamp>,
    /// When to try the stream again.
    pub next_stream: Option<Timestamp>,
    /// The open stream's number.
    pub stream: Option<RequestId>,
    /// Open requests; a reply whose number is not here was overtaken.
    pub open: BTreeMap<RequestId, (Purpose, Timestamp)>,
    /// Randomness that spreads the retries of many consoles; constant in tests.
    pub rng: fastrand::Rng,
    last_request: RequestId,
}

impl State {
    /// The state before anything happened.
    pub fn new(target: Target, theme: Theme, zone: Zone, now: Timestamp, size: (u16, u16)) -> Self {
        Self {
            target,
            bookmarks: Bookmarks::default(),
            contexts: Vec::new(),
            keymap: Keymap::default(),
            saved: Saved::new(),
            now,
            zone,
            size,
            theme,
            screen: 1,
            list: List::new(),
            detail: None,
            last_place: None,
            evals: Evals::default(),
            metrics: Metrics::default(),
            search: Search::default(),
            manage: Manage::default(),
            dialog: None,
            overlay: None,
            input: None,
            prefix: None,
            filter: FilterLine::default(),
            toast: None,
            problems: VecDeque::new(),
            me: None,
            refused_session: None,
            warned: false,
            project: None,
            limit: None,
            link: Link::Connecting,
            heard: None,
            next_poll: None,
            next_check: None,
            next_stream: None,
            stream: None,
            open: BTreeMap::new(),
            rng: fastrand::Rng::with_seed(0),
            last_request: 0,
        }
    }

    /// The state at the beginning of another context: the reader's own settings and the log stay,
    /// and answers of the old server are recognised as overtaken.
    pub fn moved(&mut self, target: Target) -> Self {
        let mut fresh = Self::new(target, self.theme, self.zone, self.now, self.size);
        fresh.bookmarks = std::mem::take(&mut self.bookmarks);
        fresh.contexts = std::mem::take(&mut self.contexts);
        fresh.keymap = std::mem::take(&mut self.keymap);
        fresh.saved = std::mem::take(&mut self.saved);
        fresh.problems = std::mem::take(&mut self.problems);
        fresh.filter.history = std::mem::take(&mut self.filter.history);
        fresh.search.history = std::mem::take(&mut self.search.history);
        fresh.evals.history = std::mem::take(&mut self.evals.history);
        fresh.metrics.stretch = self.metrics.stretch;
        fresh.screen = self.screen;
        fresh.rng = self.rng.fork();
        fresh.last_request = self.last_request;
        fresh
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
        let silent = |it: &Purpose| {
            matches!(
                it,
                Purpose::Poll
                    | Purpose::Fill(_)
                    | Purpose::Me
                    | Purpose::RefusedSession
                    | Purpose::Project(_)
                    | Purpose::Before
                    | Purpose::RetryCap
                    | Purpose::Feedback
                    | Purpose::EvalsPoll
                    | Purpose::EvalsSeen
                    | Purpose::EvalRead(_)
                    | Purpose::Baseline(_)
                    | Purpose::RuleSample(_)
                    | Purpose::TraceDecision(_)
                    | Purpose::Evaluators
            )
        };
        let shown = |purpose: &Purpose| !silent(purpose);
        self.open.values().any(|(it, since)| shown(it) && self.now.micros() - since.micros() >= 300_000)
    }

    /// Which traces the list holds.
    pub fn query(&self) -> Query {
        self.query_at(self.now)
    }

    /// The same, as of another instant. The filter was read before, so it reads again.
    pub fn query_at(&self, at: Timestamp) -> Query {
        Query {
            filter: self.parse_at(&self.filter.text, at).unwrap_or_default(),
            project: self.project.as_ref().map(|project| project.id),
        }
    }

    /// Reads a filter, with times in the reader's zone.
    ///
    /// # Errors
    /// The character that is wrong, from 0, and what is wrong with it.
    pub fn parse(&self, text: &str) -> Result<Filter, (usize, String)> {
        self.parse_at(text, self.now)
    }

    fn parse_at(&self, text: &str, at: Timestamp) -> Result<Filter, (usize, String)> {
        Filter::parse(text, &self.saved, &self.zone.of(at)).map_err(|error| {
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
        match &self.overlay {
            Some(Overlay::Projects { .. }) => Scope::Picker,
            Some(Overlay::Contexts { .. }) => Scope::Contexts,
            Some(Overlay::Bookmarks { .. }) => Scope::Bookmarks,
            Some(_) => Scope::Overlay,
            None => self.scope_below(),
        }
    }

    /// Where keys are pressed once nothing lies over the screen.
    pub fn scope_below(&self) -> Scope {
        match (&self.detail, self.screen) {
            (Some(detail), 1) if detail.pane().is_some() => Scope::Pane,
            (Some(_), 1) => Scope::Tree,
            (None, 1) => Scope::List,
            (_, EVALS) if self.evals.part == Part::Rules => Scope::Rules,
            (_, EVALS) => Scope::Evals,
            (_, METRICS) => Scope::Metrics,
            (_, SEARCH) => Scope::Search,
            (_, MANAGE) => self.manage.tab.scope(),
            _ => Scope::Panel,
        }
    }

    /// The first key of an action, as a sentence names it.
    pub fn key(&self, scope: Scope, action: Action) -> String {
        let glyphs = &self.theme.glyphs;
        key_label(self.keymap.key_of(scope, action).unwrap_or(glyphs.none), glyphs)
    }

    /// The parts of Evals on this terminal.
    pub fn evals_parts(&self) -> layout::Evals {
        layout::evals(self.size, self.evals.part, self.evals.rules.told())
    }

    /// Returns the latest failure of the requests for the list.
    pub fn failure(&self) -> Option<&NetError> {
        if let Link::Down(outage) = &self.link { Some(&outage.error) } else { None }
    }

    /// Returns whether the server refuses the credential for reading.
    pub fn is_unauthorized(&self) -> bool {
        self.failure().is_some_and(NetError::unauthorized)
    }

    /// Returns whether the current project is archived.
    pub fn is_archived(&self) -> bool {
        self.project.as_ref().is_some_and(|project| project.status == ProjectStatus::Archived)
    }

    /// Returns whether the active filter selects failed traces only.
    pub fn failures_only(&self) -> bool {
        self.parse(&self.filter.text).is_ok_and(|filter| filter.param("error") == Some("true"))
    }

    /// Whether there is a session that the server did not refuse.
    pub fn has_session(&self) -> bool {
        self.target.session && self.refused_session.is_none()
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

    /// Returns the seconds from now until an instant, rounded up; 0 if it has passed.
    pub fn seconds_until(&self, at: Timestamp) -> i64 {
        (at.micros() - self.now.micros() + 999_999).max(0).div_euclid(1_000_000)
    }
}
