//! The requests of one server, each a task of its own that reports back as a message.

use std::time::Duration;

use api::{
    Timestamp,
    client::{self, Auth, Call, Client, JUDGE_TIMEOUT, Retry, StreamEvent as Wire, calls},
    eval_rule::{EvalRuleChange, NewRuleTest},
    key::{ApiKey, NewApiKey},
    metrics::{ProjectMetric, ProjectWindow},
    page::MAX_LIMIT,
    plain::io_error,
    project::{NewProject, Project, ProjectChange, ProjectStatus},
    trace::Trace,
};
use serde::de::DeserializeOwned;
use tokio::{
    sync::mpsc::UnboundedSender,
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    change::Change,
    net::{Effect, Fetch, Msg, NetError, RateLimit, Reply, RequestId, StreamEvent, TraceQuery},
    options::Connection,
};
use crate::{net::files::write_new, net::lists::List};

/// Number of traces on a page.
const TRACES_PER_PAGE: u32 = 100;
/// Longest time for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Pages of a list that is shown as a whole; beyond them it is cut.
const MAX_PAGES: usize = 10;

/// A client for a server and its credentials.
///
/// # Errors
/// An address or a credential that can't be used.
pub fn connect(connection: &Connection) -> Result<Client, client::Error> {
    let mut options = client::Options::new(&connection.url);
    options.api_key.clone_from(&connection.api_key);
    options.session_token.clone_from(&connection.session_token);
    options.timeout = REQUEST_TIMEOUT;
    // The console shows the wait and repeats by itself; what changes something it never repeats.
    options.retry = Retry::NEVER;
    Client::new(options)
}

/// Sends the calls of one request.
pub struct Sender {
    client: Client,
    messages: UnboundedSender<Msg>,
}

impl Sender {
    /// Sends a call and reads its response.
    ///
    /// # Errors
    /// The request failed, or the response is not the API's.
    pub async fn send<T: DeserializeOwned>(&self, call: &Call<T>) -> Result<T, NetError> {
        answer(&self.client, call, &self.messages).await
    }
}

/// A server and the open requests to it.
pub struct Requests {
    /// The client; an address that can't be used answers each request with why.
    client: Result<Client, NetError>,
    sender: UnboundedSender<Msg>,
    stream: Option<AbortHandle>,
    /// The tasks of the open requests. Dropping them aborts the requests.
    tasks: JoinSet<()>,
}

impl Requests {
    /// A server that nothing was asked yet.
    pub fn new(client: Result<Client, client::Error>, sender: UnboundedSender<Msg>) -> Self {
        Self { client: client.map_err(net_error), sender, stream: None, tasks: JoinSet::new() }
    }

    /// Another server that reports to the same place.
    pub fn moved(&self, client: Result<Client, client::Error>) -> Self {
        Self::new(client, self.sender.clone())
    }

    /// Reports a message.
    pub fn tell(&self, msg: Msg) {
        // The receiver lives as long as the loop that would read this.
        let _ = self.sender.send(msg);
    }

    /// Begins what takes time; effects that take none are left alone.
    pub fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::CloseStream => self.close(),
            Effect::OpenStream { request, query } => self.open(request, query),
            Effect::LoadMe { request, session } => {
                let auth = if session { Auth::Session } else { Auth::Key };
                self.ask(request, calls::me().with(auth), |me| Reply::Me(Box::new(me)));
            }
            Effect::LoadProjects(request) => {
                self.ask_all(request, |page| calls::projects(None, page), Reply::Projects);
            }
            Effect::LoadProject { request, id } => {
                self.ask(request, calls::project(id), |it| Reply::Project(Box::new(it)));
            }
            Effect::LoadKeys(request) => self.ask_all(request, calls::api_keys, Reply::Keys),
            Effect::LoadTraces { request, query, cursor } => {
                let page = calls::Page { limit: Some(TRACES_PER_PAGE), cursor };
                self.ask(request, calls::traces(&query.filter, query.project, &page), Reply::Traces);
            }
            Effect::LoadTrace { request, id } => {
                self.ask(request, calls::trace(&id.to_string()), |trace| Reply::Trace(Box::new(trace)));
            }
            Effect::LoadSpans { request, id, cursor } => {
                let page = calls::Page { limit: Some(MAX_LIMIT), cursor: Some(cursor) };
                self.ask(request, calls::spans(&id.to_string(), &page), Reply::Spans);
            }
            Effect::LoadMetrics { request, query } => {
                self.ask(request, calls::metrics(&query), |it| Reply::Metrics(Box::new(it)));
            }
            Effect::LoadRetryCap { request, project } => {
                let (metric, window) = (ProjectMetric::RetryCapHit, ProjectWindow::Week);
                let call = calls::project_metric(project, metric, window);
                self.ask(request, call, |it| Reply::ProjectMetric(it.value));
            }
            Effect::LoadFeedback { request, filter } => {
                let page = calls::Page { limit: Some(MAX_LIMIT), cursor: None };
                self.ask(request, calls::feedback(&filter, &page), Reply::Feedback);
            }
            Effect::LoadEvaluations { request, filter, limit, cursor } => {
                let page = calls::Page { limit: Some(limit), cursor };
                self.ask(request, calls::evaluations(&filter, &page), Reply::Evaluations);
            }
            Effect::LoadEvaluation { request, id } => {
                self.ask(request, calls::evaluation(id), |it| Reply::Evaluation(Box::new(it)));
            }
            Effect::LoadRules { request, project } => {
                self.ask_all(request, move |page| calls::eval_rules(project, page), Reply::Rules);
            }
            Effect::LoadDecisions { request, rule, trace } => {
                let page = calls::Page { limit: Some(MAX_LIMIT), cursor: None };
                self.ask(request, calls::rule_decisions(rule, trace, &page), Reply::Decisions);
            }
            Effect::LoadEvaluators(request) => self.ask_all(request, calls::evaluators, Reply::Evaluators),
            Effect::Fetch(fetch) => self.fetch(fetch),
            Effect::Send { request, change, session } => self.send(request, change, session),
            Effect::Write { path, text, notice } => self.write(path, text, notice),
            Effect::Connect(_)
            | Effect::Go(_)
            | Effect::RefreshList
            | Effect::Reconnected { .. }
            | Effect::KeepBookmarks(_)
            | Effect::Copy(_)
            | Effect::Redraw
            | Effect::Suspend
            | Effect::Quit => {}
        }
    }

    fn send(&mut self, request: RequestId, change: Change, session: bool) {
        let auth = if session { Auth::Session } else { Auth::Key };
        let key = |key: ApiKey| Reply::Key(Box::new(key));
        // The lists are read again after each change, so the answer only says that it happened.
        let project = |_: Project| Reply::Done;
        match change {
            Change::CreateKey { name, query, project } => {
                let scopes = query.then(|| vec![api::Scope::Query.as_str().to_owned()]);
                let new = NewApiKey { name, scopes, project_id: project, expires_at: None };
                self.ask(request, calls::create_api_key(&new), key);
            }
            Change::RevokeKey { id, .. } => {
                self.ask(request, calls::revoke_api_key(id), |_| Reply::Done);
            }
            Change::CreateProject { name } => {
                let new = NewProject { name, ..NewProject::default() };
                self.ask(request, calls::create_project(&new), project);
            }
            Change::SetStatus { id, status: ProjectStatus::Archived, .. } => {
                self.ask(request, calls::archive_project(id), project);
            }
            Change::SetStatus { id, status: ProjectStatus::Active, .. } => {
                self.ask(request, calls::unarchive_project(id), project);
            }
            Change::SetAutoship { id, on, .. } => {
                let change = ProjectChange { prompt_autoship_enabled: Some(on), ..ProjectChange::default() };
                self.ask(request, calls::change_project(id, &change), project);
            }
            Change::Evaluate(new) => {
                let call = calls::evaluate(&new).with(auth);
                self.ask(request, call, |it| Reply::Evaluation(Box::new(it)));
            }
            Change::CreateRule(new) => {
                self.ask(request, calls::create_eval_rule(&new).with(auth), |it| Reply::RuleMade(it.id));
            }
            Change::SetEnabled { id, on, .. } => {
                let change = EvalRuleChange { enabled: Some(on), ..EvalRuleChange::default() };
                self.ask(request, calls::update_eval_rule(id, &change).with(auth), |_| Reply::Done);
            }
            Change::DeleteRule { id, .. } => {
                self.ask(request, calls::delete_eval_rule(id).with(auth), |()| Reply::Done);
            }
            Change::TestRule { id, trace, .. } => {
                let call = calls::test_eval_rule(id, &NewRuleTest { trace_id: trace }).with(auth);
                self.ask_within(request, call, JUDGE_TIMEOUT, |it| Reply::Tested(Box::new(it)));
            }
        }
    }

    fn write(&mut self, path: String, text: String, notice: String) {
        let sender = self.sender.clone();
        self.spawn(async move {
            let result = write_new(&path, &text).await;
            let failed = |error: std::io::Error| format!("{path}: {}", io_error(&error));
            let _ = sender.send(Msg::Written(result.map(|()| notice).map_err(failed)));
        });
    }

    fn open(&mut self, request: RequestId, query: TraceQuery) {
        self.close();
        if let Some(client) = self.client(request) {
            let task = follow(client, query, request, self.sender.clone());
            self.stream = Some(self.tasks.spawn(task));
        }
    }

    fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.abort();
        }
    }

    /// The client, or an answer that says why there is none.
    fn client(&self, request: RequestId) -> Option<Client> {
        match &self.client {
            Ok(client) => Some(client.clone()),
            Err(error) => {
                self.tell(Msg::Reply(request, Err(error.clone())));
                None
            }
        }
    }

    fn ask<T, F>(&mut self, request: RequestId, call: Call<T>, read: F)
    where
        T: DeserializeOwned + Send + Sync + 'static,
        F: FnOnce(T) -> Reply + Send + 'static,
    {
        self.ask_within(request, call, REQUEST_TIMEOUT, read);
    }

    /// Sends a call with another timeout.
    fn ask_within<T, F>(&mut self, request: RequestId, call: Call<T>, limit: Duration, read: F)
    where
        T: DeserializeOwned + Send + Sync + 'static,
        F: FnOnce(T) -> Reply + Send + 'static,
    {
        let Some(client) = self.client(request) else { return };
        let client = client.with_timeout(limit);
        let sender = self.sender.clone();
        self.spawn(async move {
            let result = answer(&client, &call, &sender).await;
            let _ = sender.send(Msg::Reply(request, result.map(read)));
        });
    }

    /// Requests all pages of a list, up to [`MAX_PAGES`].
    fn ask_all<L, F>(&mut self, request: RequestId, call: F, read: fn(Vec<L::Item>) -> Reply)
    where
        L: List,
        F: Fn(&calls::Page) -> Call<L> + Send + 'static,
    {
        let Some(client) = self.client(request) else { return };
        let sender = self.sender.clone();
        self.spawn(async move {
            let result = all(&client, call, &sender).await;
            let _ = sender.send(Msg::Reply(request, result.map(read)));
        });
    }

    fn fetch(&mut self, fetch: Fetch) {
        let Some(client) = self.client(fetch.request) else { return };
        let messages = self.sender.clone();
        self.spawn(async move {
            let result = fetch.send(Sender { client, messages: messages.clone() }).await;
            let _ = messages.send(Msg::Reply(fetch.request, result.map(Reply::Fetched)));
        });
    }

    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        // Finished tasks are removed, so that the set does not grow.
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(task);
    }
}

async fn all<L: List>(
    client: &Client,
    call: impl Fn(&calls::Page) -> Call<L>,
    sender: &UnboundedSender<Msg>,
) -> Result<Vec<L::Item>, NetError> {
    let mut page = calls::Page { limit: Some(MAX_LIMIT), cursor: None };
    let mut rows = Vec::new();
    for _ in 0..MAX_PAGES {
        let (more, next) = answer(client, &call(&page), sender).await?.into_rows();
        rows.extend(more);
        if next.is_none() {
            break;
        }
        page.cursor = next;
    }
    Ok(rows)
}

/// Sends a call, reads its response and reports the rate limit.
async fn answer<T: DeserializeOwned>(
    client: &Client,
    call: &Call<T>,
    sender: &UnboundedSender<Msg>,
) -> Result<T, NetError> {
    let answer = client.send(call).await.map_err(net_error)?;
    if let Some((limit, remaining)) = answer.rate_limit() {
        let reset =
            answer.headers.get("x-ratelimit-reset").and_then(|it| it.to_str().ok()?.parse::<i64>().ok());
        let reset = reset.map(|seconds| Timestamp::from_micros(seconds.saturating_mul(1_000_000)));
        let _ = sender.send(Msg::Limit(RateLimit { limit, remaining, reset }));
    }
    answer.json().map_err(|error| match error {
        client::Error::Unreadable { .. } => unreadable(&answer),
        other => net_error(other),
    })
}

/// Returns the error for a successful response that is not the API's.
fn unreadable(answer: &client::ApiResponse) -> NetError {
    let kind = answer.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let what = if kind.starts_with("text/html") || answer.body.trim_ascii_start().starts_with(b"<") {
        "an HTML page"
    } else if kind.starts_with("application/json") {
        "JSON that this version of the console does not understand"
    } else {
        "something else than JSON"
    };
    let message = format!("the answer is {what}");
    NetError { status: Some(answer.status), message, not_api: true, ..NetError::default() }
}

/// Reads the live stream until it ends.
async fn follow(client: Client, query: TraceQuery, request: RequestId, sender: UnboundedSender<Msg>) {
    let tell = |event| sender.send(Msg::Stream(request, event)).is_ok();
    let call = calls::trace_stream(&query.filter, query.project);
    let mut stream = match client.stream(&call, None).await {
        Ok(stream) => stream,
        Err(error) => {
            tell(StreamEvent::Closed(net_error(error)));
            return;
        }
    };
    if !tell(StreamEvent::Open) {
        return;
    }
    let why = loop {
        match stream.next().await {
            Some(Ok(Wire::Alive)) => {
                if !tell(StreamEvent::Alive) {
                    return;
                }
            }
            // No trace is lost: the stream resumes after the last one received.
            Some(Ok(Wire::Lagged { cursor })) => match client.stream(&call, cursor.as_deref()).await {
                Ok(resumed) => stream = resumed,
                Err(error) => break net_error(error),
            },
            Some(Ok(Wire::Trace { trace, .. })) => match serde_json::from_value::<Trace>(trace) {
                Ok(trace) => {
                    if !tell(StreamEvent::Traces(vec![trace])) {
                        return;
                    }
                }
                Err(_) => {
                    break NetError {
                        message: "the stream sent a trace that this version does not understand".to_owned(),
                        ..NetError::default()
                    };
                }
            },
            Some(Err(error)) => break net_error(error),
            None => {
                break NetError { message: "the server ended the stream".to_owned(), ..NetError::default() };
            }
        }
    };
    // A server that ends each stream at once would otherwise be asked without a pause.
    sleep_until(Instant::now() + Duration::from_millis(200)).await;
    tell(StreamEvent::Closed(why));
}

fn net_error(error: client::Error) -> NetError {
    let message = error.to_string();
    match error {
        client::Error::Answer(answer) => {
            // An error of the API is an object with a sentence; anything else, such as a redirect, comes
            // from another server.
            let not_api = !answer.body.is_object();
            let status = answer.status;
            let redirected = (300..400).contains(&status);
            NetError {
                status: Some(status),
                code: Some(answer.code).filter(|code| !code.is_empty()),
                required_plan: answer.body.get("required_plan").and_then(|it| it.as_str()).map(str::to_owned),
                message: if not_api && !redirected {
                    "the answer is not the JSON of the API".to_owned()
                } else {
                    answer.message
                },
                request_id: answer.request_id,
                retry_after: answer.retry_after.map(|wait| wait.as_secs()),
                not_api,
            }
        }
        // Nothing was sent, and nothing will be until there is a usable credential.
        client::Error::NoCredential { .. } | client::Error::BadCredential => {
            NetError { status: Some(401), message, ..NetError::default() }
        }
        client::Error::Unreadable { .. } => NetError {
            status: Some(200),
            message: "the answer is not the JSON of the API".to_owned(),
            not_api: true,
            ..NetError::default()
        },
        client::Error::Unreachable { .. } | client::Error::Address { .. } | client::Error::NotAStream => {
            NetError { message, ..NetError::default() }
        }
    }
}
