//! The state that all screens share: the server, the user's settings, the connection and the overlays.
//!
//! A screen keeps its own records; see [`Screen`].

mod changes;
mod filter_line;
pub mod freshness;
pub mod notice;
mod paged;
mod parts;
mod pending;
mod projects;
mod requests;
mod screen;
pub mod trouble;

use std::collections::VecDeque;

use api::{
    Timestamp,
    client::{
        Auth, Call,
        calls::{self, Page},
    },
    evaluator::{Evaluator, EvaluatorList},
    filter::{Filter, Saved},
    project::{Project, ProjectStatus},
    tenant::Me,
};
use serde::de::DeserializeOwned;

pub use crate::ids::LoadedIds;
pub use changes::ScreenChanges;
pub use filter_line::{FilterField, check_period, parse_terms, parse_value};
pub use paged::{PagedRow, PagedRows, RowPage};
pub use parts::{Link, Location, Older, Outage, Overlay, Problem, Purpose, Toast};
pub use pending::{Pending, Ticket};
pub use projects::{Projects, Rows};
pub use requests::{RequestPurpose, ScreenReplies, ScreenRequests};
pub use screen::{
    Completion, Export, LineError, Screen, ScreenActions, ScreenLines, ScreenRecords, ScreenView, Tab,
    field_completions,
};

use crate::{
    bookmarks::Bookmarks,
    dialog::{Body, Dialog},
    input::Input,
    keymap::{
        Action, BOOKMARKS_SCOPE, CONTEXTS_SCOPE, HELP_SCOPE, Keymap, OVERLAY_SCOPES, PROJECTS_SCOPE,
        SHARED_BINDINGS, Scope, key_label,
    },
    net::{Effect, List, NetError, RateLimit, Request, RequestId},
    options::Target,
    theme::{Glyphs, Theme},
};
use present::format::Zone;

/// Number of problems that the log keeps.
const MAX_PROBLEMS: usize = 50;
/// How long a notice stays, in microseconds.
const NOTICE_MICROS: i64 = 6_000_000;
/// Microseconds between two checks of the identity, the refused session and the current project.
const CHECK_INTERVAL_MICROS: i64 = 30_000_000;
/// How long a request may take until a screen shows that it is loading, in microseconds.
const BUSY_AFTER_MICROS: i64 = 300_000;

/// The state that all screens share.
#[derive(Debug)]
pub struct Shell {
    /// The server and the context of the console.
    pub target: Target,
    /// Traces that the user marked.
    pub bookmarks: Bookmarks,
    /// The contexts that the console can switch to.
    pub contexts: Vec<Target>,
    /// The current key bindings.
    pub keymap: Keymap,
    /// Saved filters.
    pub saved: Saved,
    /// The time, as of the last tick.
    pub now: Timestamp,
    /// Time zone of the user.
    pub zone: Zone,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Colours and characters.
    pub theme: Theme,
    /// The digit of the current screen.
    pub screen: u8,
    /// The key scope of the current screen, without overlays.
    pub scope: Scope,
    /// The previous place.
    pub last_place: Option<Location>,
    /// The open dialog.
    pub dialog: Option<Dialog>,
    /// The overlay over the screen.
    pub overlay: Option<Overlay>,
    /// The line being edited.
    pub input: Option<Input>,
    /// The error of the line being edited.
    pub line_error: Option<LineError>,
    /// Whether Enter was pressed on an invalid line, after which every change is checked.
    pub line_refused: bool,
    /// Keys of an unfinished sequence.
    pub prefix: Option<String>,
    /// The current notice.
    pub toast: Option<Toast>,
    /// Problems, newest last.
    pub problems: VecDeque<Problem>,
    /// The identity of the credential: the session's, else the key's.
    pub me: Option<Me>,
    /// Why the session was refused; set only while an API key can still read.
    pub refused_session: Option<NetError>,
    /// Whether the end of the session was announced.
    pub expiry_announced: bool,
    /// The project shown; none means all of them.
    pub project: Option<Project>,
    /// The projects of the tenant.
    pub projects: Projects,
    /// The evaluators that can be run.
    pub evaluators: Rows<Evaluator>,
    /// Whether no trace has arrived although the list has no filter.
    pub no_traces: bool,
    /// The rate limit, as of the last response.
    pub limit: Option<RateLimit>,
    /// The way in which new traces arrive.
    pub link: Link,
    /// Time at which the server last sent a message about the list.
    pub heard: Option<Timestamp>,
    /// Time at which the oldest open request for the list was sent.
    pub unanswered: Option<Timestamp>,
    /// Time at which to poll the list again, if nothing else does.
    pub next_poll: Option<Timestamp>,
    /// Time at which to check the identity, the refused session and the current project again.
    pub next_check: Option<Timestamp>,
    /// Time at which to open the stream again.
    pub next_stream: Option<Timestamp>,
    /// The id of the open stream.
    pub stream: Option<RequestId>,
    /// Open requests that belong to no screen.
    pub pending: Pending<Purpose>,
    /// Randomness that spreads the retries of many consoles; constant in tests.
    pub rng: fastrand::Rng,
    last_request: RequestId,
}

impl List for EvaluatorList {
    type Row = Evaluator;

    fn into_rows(self) -> (Vec<Evaluator>, Option<String>) {
        (self.evaluators, self.next_cursor)
    }
}

/// The settings of the user that texts are laid out with.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Characters of the terminal.
    pub glyphs: Glyphs,
    /// Time zone.
    pub zone: Zone,
    /// The time.
    pub now: Timestamp,
}

impl Shell {
    /// Returns the state of a console that has just started.
    pub fn new(target: Target, theme: Theme, zone: Zone, now: Timestamp, size: (u16, u16)) -> Self {
        Self {
            target,
            bookmarks: Bookmarks::default(),
            contexts: Vec::new(),
            keymap: Keymap::defaults(&[SHARED_BINDINGS], OVERLAY_SCOPES.to_vec()),
            saved: Saved::new(),
            now,
            zone,
            size,
            theme,
            screen: 1,
            scope: HELP_SCOPE,
            last_place: None,
            dialog: None,
            overlay: None,
            input: None,
            line_error: None,
            line_refused: false,
            prefix: None,
            toast: None,
            problems: VecDeque::new(),
            me: None,
            refused_session: None,
            expiry_announced: false,
            project: None,
            projects: Projects::default(),
            evaluators: Rows::default(),
            no_traces: false,
            limit: None,
            link: Link::Connecting,
            heard: None,
            unanswered: None,
            next_poll: None,
            next_check: None,
            next_stream: None,
            stream: None,
            pending: Pending::default(),
            rng: fastrand::Rng::with_seed(0),
            last_request: 0,
        }
    }

    /// Switches to another context. The reader's settings and the log stay; responses of the old
    /// server are dropped, because request ids keep counting.
    pub fn switch(&mut self, target: Target) {
        let mut fresh = Self::new(target, self.theme, self.zone, self.now, self.size);
        fresh.bookmarks = std::mem::take(&mut self.bookmarks);
        fresh.contexts = std::mem::take(&mut self.contexts);
        std::mem::swap(&mut fresh.keymap, &mut self.keymap);
        fresh.saved = std::mem::take(&mut self.saved);
        fresh.problems = std::mem::take(&mut self.problems);
        fresh.screen = self.screen;
        fresh.scope = self.scope;
        fresh.rng = self.rng.fork();
        fresh.last_request = self.last_request;
        *self = fresh;
    }

    /// Returns the id and the time of a new request.
    pub fn ticket(&mut self) -> Ticket {
        self.last_request += 1;
        Ticket { id: self.last_request, at: self.now }
    }

    /// Returns the id of a new stream, which supersedes the one before.
    pub fn request_stream(&mut self) -> RequestId {
        let id = self.ticket().id;
        self.stream = Some(id);
        id
    }

    /// Requests all pages of a list that belongs to no screen. An open request for the same purpose is superseded.
    pub fn send_all<L, F>(&mut self, purpose: Purpose, call: F) -> Effect
    where
        L: List,
        F: Fn(&Page) -> Call<L> + Send + Sync + 'static,
    {
        let ticket = self.ticket();
        self.pending.send_all(ticket, purpose, call)
    }

    /// Sends the request of a change, if there is one.
    pub fn send_request(
        &mut self,
        purpose: Purpose,
        request: impl FnOnce(RequestId) -> Option<Request>,
    ) -> Option<Effect> {
        let ticket = self.ticket();
        let request = request(ticket.id)?;
        self.pending.start(ticket, purpose);
        Some(Effect::Request(request))
    }

    /// Sends a call that belongs to no screen. An open request for the same purpose is superseded.
    pub fn send<T>(&mut self, purpose: Purpose, call: Call<T>) -> Effect
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        let ticket = self.ticket();
        self.pending.send(ticket, purpose, call)
    }

    /// Requests the identity of the credential.
    pub fn load_me(&mut self) -> Effect {
        let auth = if self.has_session() { Auth::Session } else { Auth::Key };
        self.send(Purpose::Me, calls::me().with(auth))
    }

    /// Requests the projects of the tenant.
    pub fn load_projects(&mut self) -> Effect {
        self.request_projects(Purpose::Projects)
    }

    /// Requests the projects for a purpose, archived ones too.
    pub fn request_projects(&mut self, purpose: Purpose) -> Effect {
        self.send_all(purpose, |page| calls::projects(None, page))
    }

    /// Stores a fresh list of projects.
    pub fn fill_projects(&mut self, projects: Vec<Project>) {
        self.projects.fill(projects);
        let active = self.active_projects();
        if let Some(Dialog { body: Body::Form(form), .. }) = &mut self.dialog {
            form.fill_projects(active);
        }
        // The header shows the status of the current project.
        let shown = self.project_id().and_then(|id| self.projects.get(id));
        if let Some(project) = shown.cloned() {
            self.project = Some(project);
        }
    }

    /// Requests the projects unless they are known or already requested.
    pub fn need_projects(&mut self) -> Option<Effect> {
        let known = self.projects.loaded || self.pending.has(|it| *it == Purpose::Projects);
        (!known).then(|| self.load_projects())
    }

    /// Requests the evaluators unless a request is open.
    pub fn load_evaluators(&mut self) -> Option<Effect> {
        if self.pending.has(|it| *it == Purpose::Evaluators) {
            return None;
        }
        Some(self.send_all(Purpose::Evaluators, calls::evaluators))
    }

    /// Returns whether an open request that belongs to no screen has taken long enough to show it.
    pub fn is_busy(&self) -> bool {
        let shown = |it: &Purpose| {
            matches!(it, Purpose::Lookup | Purpose::Projects | Purpose::Change | Purpose::Check)
        };
        self.pending.is_slow(self.busy_before(), shown)
    }

    /// Returns the time before which a request was sent that has taken long enough to show it.
    pub fn busy_before(&self) -> Timestamp {
        Timestamp::from_micros(self.now.micros() - BUSY_AFTER_MICROS)
    }

    /// Parses a trace filter, with times in the user's zone.
    ///
    /// # Errors
    /// Fails with the position of the first wrong character, from 0, and the problem.
    pub fn parse(&self, text: &str) -> Result<Filter, LineError> {
        self.parse_at(text, self.now)
    }

    /// Parses a trace filter whose relative times count from the given instant.
    ///
    /// # Errors
    /// Fails with the position of the first wrong character, from 0, and the problem.
    pub fn parse_at(&self, text: &str, at: Timestamp) -> Result<Filter, LineError> {
        Filter::parse(text, &self.saved, &self.zone.of(at)).map_err(|error| {
            let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            (error.column(), format!("{}{hint}", error.message))
        })
    }

    /// Shows a notice for a while.
    pub fn notify(&mut self, text: impl Into<String>) {
        let until = Timestamp::from_micros(self.now.micros() + NOTICE_MICROS);
        self.toast = Some(Toast { text: text.into(), is_failure: false, until });
    }

    /// Shows a failure for a while and adds it to the log.
    pub fn report(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.problems.len() == MAX_PROBLEMS {
            self.problems.pop_front();
        }
        self.problems.push_back(Problem { at: self.now, text: text.clone() });
        let until = Timestamp::from_micros(self.now.micros() + NOTICE_MICROS);
        self.toast = Some(Toast { text, is_failure: true, until });
    }

    /// Opens a line of text for editing.
    pub fn edit(&mut self, input: Input) {
        self.line_error = None;
        self.line_refused = false;
        self.input = Some(input);
    }

    /// Returns the current key scope: the overlay's, else the screen's.
    pub fn active_scope(&self) -> Scope {
        match &self.overlay {
            Some(Overlay::Projects { .. }) => PROJECTS_SCOPE,
            Some(Overlay::Contexts { .. }) => CONTEXTS_SCOPE,
            Some(Overlay::Bookmarks { .. }) => BOOKMARKS_SCOPE,
            Some(_) => HELP_SCOPE,
            None => self.scope,
        }
    }

    /// Returns the first key of an action as it is shown in a sentence.
    pub fn key(&self, scope: Scope, action: Action) -> String {
        let glyphs = &self.theme.glyphs;
        key_label(self.keymap.key_of(scope, action).unwrap_or(glyphs.none), glyphs)
    }

    /// Returns the first key of an action of any screen, by the action's name.
    pub fn key_named(&self, name: &str) -> String {
        let glyphs = &self.theme.glyphs;
        key_label(self.keymap.key_named(name).unwrap_or(glyphs.none), glyphs)
    }

    /// Returns the latest failure of the requests for the list.
    pub fn failure(&self) -> Option<&NetError> {
        if let Link::Down(outage) = &self.link { Some(&outage.error) } else { None }
    }

    /// Returns whether the server refuses the credential for reading.
    pub fn is_unauthorized(&self) -> bool {
        self.failure().is_some_and(NetError::is_unauthorized)
    }

    /// Returns whether the current project is archived.
    pub fn is_archived(&self) -> bool {
        self.project.as_ref().is_some_and(|project| project.status == ProjectStatus::Archived)
    }

    /// Returns whether there is a session that the server did not refuse.
    pub fn has_session(&self) -> bool {
        self.target.session && self.refused_session.is_none()
    }

    /// Returns whether the requested project is still being looked up by its name.
    pub fn is_resolving_project(&self) -> bool {
        self.target.project.is_some() && self.project.is_none()
    }

    /// Returns the id of the project shown.
    pub fn project_id(&self) -> Option<uuid::Uuid> {
        self.project.as_ref().map(|project| project.id)
    }

    /// Returns the projects that a rule can be created in.
    pub fn active_projects(&self) -> Vec<(uuid::Uuid, String)> {
        // The project shown is loaded before the list of projects.
        let shown = self.project.as_ref().filter(|_| !self.projects.loaded);
        let projects = self.projects.items.iter().chain(shown);
        let active = projects.filter(|it| it.status == ProjectStatus::Active);
        active.map(|it| (it.id, it.name.clone())).collect()
    }

    /// Returns the settings that texts are laid out with.
    pub fn reader(&self) -> Reader {
        Reader { glyphs: self.theme.glyphs, zone: self.zone, now: self.now }
    }

    /// Returns the name of the project shown, else of the one requested.
    pub fn project_name(&self) -> Option<&str> {
        self.project.as_ref().map(|project| project.name.as_str()).or(self.target.project.as_deref())
    }

    /// Returns the seconds from now until an instant, rounded up; 0 if it has passed.
    pub fn seconds_until(&self, at: Timestamp) -> i64 {
        (at.micros() - self.now.micros() + 999_999).max(0).div_euclid(1_000_000)
    }

    /// Returns the instant this many microseconds from now.
    pub fn after(&self, micros: i64) -> Option<Timestamp> {
        Some(Timestamp::from_micros(self.now.micros() + micros))
    }

    /// Schedules the next check of the identity, the refused session and the current project.
    pub fn schedule_check(&mut self) {
        self.next_check = self.after(CHECK_INTERVAL_MICROS);
    }

    /// Returns a `curl` command for an address of the API; the credential is left to the shell.
    pub fn curl(&self, target: &str) -> String {
        let (url, variable) = (&self.target.url, self.target.variable);
        format!("curl -sS -H \"Authorization: Bearer ${variable}\" '{url}{target}'")
    }
}
