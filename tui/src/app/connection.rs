//! The start of a connection, requests that belong to no screen, and the routing of responses.

use api::{
    Timestamp,
    client::{Auth, calls},
    evaluator::Evaluator,
    project::{Project, ProjectStatus},
};

use crate::{
    dialog::{Body, Dialog},
    ids::IdError,
    net::{Effect, NetError, RequestId, Response},
    options::Options,
    screen::{manage, traces::feed},
    shell::{Link, Purpose, Rows, Shell, notice::describe, trouble},
};

use super::{App, dialog::outcome, typing, update::resolve};

/// How long before the end of a session the console announces it, in microseconds.
const EXPIRES_SOON_MICROS: i64 = 300_000_000;

/// Applies the options and returns the first effects of a console.
pub fn start(app: &mut App, options: &Options) -> Vec<Effect> {
    app.shell.notify("enter opens, / filters, ? lists the keys, q quits");
    if let Some(screen) = &options.screen {
        match app.screens.digit(screen) {
            Some(digit) => app.shell.screen = digit,
            None => app.shell.report(format!("there is no screen {screen}")),
        }
    }
    if let Some(filter) = &options.filter {
        match app.shell.parse(filter) {
            Ok(_) => filter.trim().clone_into(&mut app.screens.traces.filter.text),
            Err(error) => typing::refuse(&mut app.shell, filter, error),
        }
    }
    let effects = begin(app);
    let mut effects = resolve(app, effects);
    if let Some(trace) = &options.trace {
        match trace.parse() {
            Ok(id) => {
                app.shell.screen = 1;
                effects.extend(app.screens.traces.open(&mut app.shell, id, None, None));
            }
            Err(_) => app.shell.report(format!("{trace} is not the id of a trace")),
        }
    }
    app.settle();
    effects
}

/// Returns the first requests to a server.
pub fn begin(app: &mut App) -> Vec<Effect> {
    // Screen 7 requests the identity itself.
    let identified = app.shell.screen == manage::SCREEN_DIGIT;
    let mut effects = if identified { Vec::new() } else { vec![app.shell.load_me()] };
    effects.extend(app.screens.get_mut(app.shell.screen).enter(&mut app.shell));
    effects.push(Effect::RefreshList);
    effects
}

/// Shows another project, or all of them.
pub fn set_project(app: &mut App, project: Option<Project>) -> Vec<Effect> {
    app.shell.target.project = None;
    app.shell.project = project;
    let mut effects = Vec::new();
    // The list of traces comes last.
    for screen in app.screens.all_mut().into_iter().rev() {
        effects.extend(screen.project_changed(&mut app.shell));
    }
    effects
}

/// Requests the list of traces; first the project, if it is known by name only.
pub fn refresh_list(app: &mut App) -> Vec<Effect> {
    if app.shell.is_resolving_project() {
        app.shell.next_poll = None;
        return vec![app.shell.request_projects(Purpose::Lookup)];
    }
    feed::refresh(&mut app.screens.traces, &mut app.shell)
}

/// Handles the passing of time.
pub fn tick(app: &mut App) -> Vec<Effect> {
    let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= app.shell.now);
    let check_due = due(app.shell.next_check);
    announce_expiry(&mut app.shell);
    let mut effects = Vec::new();
    for screen in app.screens.all_mut() {
        effects.extend(screen.tick(&mut app.shell));
    }
    if check_due {
        effects.extend(check(app));
    }
    effects
}

/// Requests data that can change without an event on the stream. While the server is unreachable or
/// refuses, only the list is requested.
fn check(app: &mut App) -> Vec<Effect> {
    app.shell.schedule_check();
    if !matches!(app.shell.link, Link::Streaming | Link::Polling) {
        return Vec::new();
    }
    let mut effects = Vec::new();
    let manage = &app.screens.manage;
    let failed = manage.keys.error.is_some()
        || manage.rejections.error.is_some()
        || app.shell.projects.error.is_some();
    if app.shell.screen == manage::SCREEN_DIGIT && failed {
        effects.extend(manage::update::load(&mut app.screens.manage, &mut app.shell));
    } else if app.shell.me.is_none() && !app.shell.pending.has(|it| *it == Purpose::Me) {
        effects.push(app.shell.load_me());
    }
    if app.shell.refused_session.is_some() {
        effects.push(app.shell.send(Purpose::RefusedSession, calls::me().with(Auth::Session)));
    }
    if let Some(id) = app.shell.project_id() {
        effects.push(app.shell.send(Purpose::Project(id), calls::project(id)));
    }
    effects.extend(background(app));
    effects
}

/// Requests what the tab line shows of the screens.
fn background(app: &mut App) -> Vec<Effect> {
    let shell = &mut app.shell;
    app.screens.all_mut().into_iter().flat_map(|screen| screen.background(shell)).collect()
}

/// Stores the current project as the server returned it.
fn update_project(shell: &mut Shell, project: Project) {
    let Some(shown) = shell.project.as_mut().filter(|shown| shown.id == project.id) else { return };
    let notice = match (shown.status, project.status) {
        (ProjectStatus::Active, ProjectStatus::Archived) => Some("was archived; it accepts no new traces"),
        (ProjectStatus::Archived, ProjectStatus::Active) => Some("was restored; it accepts traces again"),
        _ => None,
    };
    *shown = project.clone();
    if let Some(notice) = notice {
        shell.notify(format!("{} {notice}", project.name));
    }
}

/// Announces once that the session is about to end.
fn announce_expiry(shell: &mut Shell) {
    let ends = shell.me.as_ref().and_then(|me| me.expires_at).filter(|_| !shell.expiry_announced);
    let left = ends.map(|at| at.micros() - shell.now.micros());
    if let Some(left) = left.filter(|left| *left <= EXPIRES_SOON_MICROS) {
        shell.expiry_announced = true;
        let left = present::format::elapsed(left / 1_000_000);
        shell.report(format!("the session ends in {left}; loupe auth login --session renews it"));
    }
}

/// Handles the end of a request.
pub fn reply(app: &mut App, request: RequestId, result: Result<Response, NetError>) -> Vec<Effect> {
    if let Some((purpose, _)) = app.shell.pending.finish(request) {
        return own_reply(app, purpose, result);
    }
    match app.screens.all_mut().into_iter().find(|screen| screen.owns(request)) {
        Some(screen) => screen.reply(&mut app.shell, request, result),
        None => Vec::new(),
    }
}

/// Handles the end of a request that belongs to no screen.
fn own_reply(app: &mut App, purpose: Purpose, result: Result<Response, NetError>) -> Vec<Effect> {
    match purpose {
        Purpose::Change => {
            let mut effects = match result.as_ref().err() {
                Some(error) if trouble::is_session_refused(&app.shell, error) => {
                    trouble::session_refused(&mut app.shell, error)
                }
                _ => Vec::new(),
            };
            effects.extend(outcome::sent(app, result));
            effects
        }
        Purpose::Check => outcome::checked(app, result),
        purpose => {
            let result = result.and_then(|response| fill(app, &purpose, response));
            result.unwrap_or_else(|error| failed(&mut app.shell, &purpose, error))
        }
    }
}

/// Stores the response to a request of the shell.
fn fill(app: &mut App, purpose: &Purpose, response: Response) -> Result<Vec<Effect>, NetError> {
    let shell = &mut app.shell;
    match purpose {
        Purpose::Me => {
            shell.me = Some(response.decoded()?);
            return Ok(background(app));
        }
        Purpose::RefusedSession => {
            shell.me = Some(response.decoded()?);
            shell.refused_session = None;
            shell.notify("the session token is accepted again");
            if shell.screen == manage::SCREEN_DIGIT {
                return Ok(manage::update::load(&mut app.screens.manage, shell));
            }
        }
        Purpose::Project(_) => update_project(shell, response.decoded()?),
        Purpose::Lookup => {
            shell.projects.fill(response.decoded()?);
            return Ok(resolve_project(app));
        }
        Purpose::Projects => shell.fill_projects(response.decoded()?),
        Purpose::Evaluators => {
            let list: Vec<Evaluator> = response.decoded()?;
            if let Some(Dialog { body: Body::Form(form), .. }) = &mut shell.dialog {
                form.fill_evaluators(&list);
            }
            shell.evaluators = Rows { items: list, loaded: true, ..Rows::default() };
        }
        Purpose::Change | Purpose::Check => {}
    }
    Ok(Vec::new())
}

/// Handles a failed request that belongs to no screen.
fn failed(shell: &mut Shell, purpose: &Purpose, error: NetError) -> Vec<Effect> {
    if *purpose == Purpose::Me && trouble::is_session_refused(shell, &error) {
        return trouble::session_refused(shell, &error);
    }
    if *purpose == Purpose::Lookup {
        return trouble::outage(shell, error);
    }
    let effects =
        if *purpose == Purpose::RefusedSession { Vec::new() } else { trouble::unauthorized(shell, &error) };
    match purpose {
        Purpose::Projects => {
            if trouble::is_new(shell.projects.error.as_ref(), &error) {
                shell.report(describe(&error));
            }
            shell.projects.error = Some(error);
        }
        Purpose::Evaluators => {
            // The names of an earlier response can be chosen from.
            if shell.dialog.is_some() && !shell.evaluators.loaded {
                let problem = describe(&error);
                shell.report(format!("the evaluators can't be listed, type the name: {problem}"));
            }
            shell.evaluators.error = Some(error);
        }
        // These requests only serve the header and are repeated anyway.
        Purpose::Me
        | Purpose::RefusedSession
        | Purpose::Project(_)
        | Purpose::Lookup
        | Purpose::Change
        | Purpose::Check => {}
    }
    effects
}

/// Repeats failed requests after an outage of the server.
pub fn reconnected(app: &mut App, refused: bool) -> Vec<Effect> {
    let mut effects = Vec::new();
    // The role or the plan may have changed during a refusal.
    let identify = app.shell.me.is_none() || refused;
    if app.shell.screen == manage::SCREEN_DIGIT {
        effects.extend(manage::update::load(&mut app.screens.manage, &mut app.shell));
    } else if identify && !app.shell.pending.has(|it| *it == Purpose::Me) {
        effects.push(app.shell.load_me());
    }
    for screen in app.screens.all_mut() {
        effects.extend(screen.reconnected(&mut app.shell));
    }
    effects
}

/// Finds the requested project by its name, its id, or the end of its id.
fn resolve_project(app: &mut App) -> Vec<Effect> {
    let wanted = app.shell.target.project.clone().unwrap_or_default();
    let found = app.shell.projects.resolve(&wanted).cloned();
    if let Err(error) = found {
        let problem = match error {
            IdError::NotFound => format!("no project named {wanted}"),
            IdError::Ambiguous => format!("{wanted} is the end of more than one project's id"),
        };
        app.shell.report(format!("{problem}; showing all projects"));
        app.shell.target.project = None;
    }
    app.shell.project = found.ok();
    let mut effects = vec![Effect::RefreshList];
    if app.shell.screen != manage::SCREEN_DIGIT {
        effects.extend(app.screens.get_mut(app.shell.screen).enter(&mut app.shell));
    }
    effects
}
