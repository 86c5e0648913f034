//! Tests of the console as a whole: messages in, effects and screens out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod dialogs;
mod effects;
mod eval_forms;
mod eval_screens;
mod recovery;
pub mod screens;

pub use api::{
    Plan, Role, Timestamp,
    tenant::{Limits, Me, RequestLimits, Tenant, Usage},
    trace::{Span, Trace, TraceList},
};
pub use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
pub use serde_json::value::RawValue;

use std::collections::BTreeMap;

pub use crate::{
    Options,
    app::App,
    app::connection::start,
    app::update::update,
    change::Change,
    dialog::{Dialog, Phase},
    fixture::{BASE_MICROS, id, span, trace},
    net::{Effect, Msg, NetError, Response, StreamEvent},
    options::Target,
    screen::traces::state::TracesRequest,
    shell::Link,
    theme::{Glyphs, Theme},
};
pub use present::format::Zone;

pub const UNICODE_THEME: Theme = Theme { colour: true, glyphs: Glyphs::UNICODE };
pub const ASCII_THEME: Theme = Theme { colour: false, glyphs: Glyphs::ASCII };

/// Returns a console that was just started, and its first effects.
pub fn started(size: (u16, u16), theme: Theme) -> (App, Vec<Effect>) {
    let target = Target {
        url: "https://loupe.example".into(),
        context: Some("prod".into()),
        protected: true,
        read_only: false,
        api_key: true,
        session: true,
        credential: Some("API key lp_abcdefgh...".into()),
        variable: "LOUPE_API_KEY",
        project: None,
    };
    let mut state =
        App::new(target, theme, Zone::Utc, Timestamp::from_micros(BASE_MICROS + 60_000_000), size);
    let effects = start(&mut state, &Options::default());
    state.shell.toast = None;
    (state, effects)
}

/// Returns a console with a list of traces, over the stream.
pub fn filled(size: (u16, u16), theme: Theme) -> App {
    let (mut state, effects) = started(size, theme);
    update(&mut state, Msg::Reply(me_request(&effects), Ok(Response::new(me()))));
    let effects = answer(&mut state, &effects, page(rows()));
    let Some(Effect::OpenStream { request, .. }) = effects.last() else { panic!("{effects:?}") };
    let effects = update(&mut state, Msg::Stream(*request, StreamEvent::Open));
    answer(&mut state, &effects, page(rows()));
    state
}

pub fn me() -> Me {
    Me {
        tenant: Tenant {
            id: id(0),
            name: "demo".into(),
            plan: Plan::Team,
            external_id: None,
            created_at: Timestamp::from_micros(BASE_MICROS),
        },
        role: Role::Owner,
        subject: Some("you@example".into()),
        api_key: None,
        expires_at: Some(Timestamp::from_micros(BASE_MICROS + 60_000_000 + 41 * 60_000_000)),
        limits: Limits {
            requests_per_minute: RequestLimits {
                traces: Some(60),
                metrics: Some(30),
                feedback: Some(120),
                eval: Some(10),
                prompts: Some(600),
                ingest: Some(6_000),
                other: None,
            },
            traces_per_month: Some(100_000),
            llm_evaluations_per_month: Some(500),
            members: Some(10),
        },
        usage: Usage { month: "2026-11".into(), traces: 72_318, llm_evaluations: 500, members: 3 },
    }
}

pub fn project(n: u128, name: &str, archived: bool) -> api::project::Project {
    use api::project::{Project, ProjectStatus};
    let time = Timestamp::from_micros(BASE_MICROS);
    Project {
        id: id(n),
        name: name.into(),
        status: if archived { ProjectStatus::Archived } else { ProjectStatus::Active },
        prompt_autoship_enabled: false,
        retention_days: None,
        archived_at: archived.then_some(time),
        created_at: time,
        updated_at: time,
    }
}

/// A request among the effects, taken apart.
#[derive(Debug)]
pub struct SentRequest {
    pub id: u64,
    pub method: String,
    pub path: String,
    /// The credential that goes first; empty for the API key.
    pub auth: String,
    pub params: BTreeMap<String, String>,
}

impl SentRequest {
    /// Takes a request apart. None for other effects.
    pub fn of(effect: &Effect) -> Option<Self> {
        let Effect::Request(request) = effect else { return None };
        let (method, rest) = request.summary().split_once(' ').unwrap();
        let (target, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let auth = rest.strip_prefix("as ").and_then(|it| it.split(' ').next()).unwrap_or_default();
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        Some(Self {
            id: request.id,
            method: method.into(),
            path: path.into(),
            auth: auth.into(),
            params: pairs.into_owned().collect(),
        })
    }

    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.get(name).map(String::as_str)
    }

    /// Returns the id of a parameter.
    pub fn uuid(&self, name: &str) -> Option<uuid::Uuid> {
        self.param(name).map(|it| it.parse().unwrap())
    }

    /// Returns the last id of the path.
    pub fn path_id(&self) -> Option<uuid::Uuid> {
        self.path.split('/').rev().find_map(|it| it.parse().ok())
    }

    /// Returns the time of a parameter.
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        self.param(name).map(|it| it.parse().unwrap())
    }

    /// Whether the request reads this path; `*` is any segment.
    pub fn gets(&self, path: &str) -> bool {
        let segments = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
        let (own, wanted) = (segments(&self.path), segments(path));
        self.method == "GET"
            && own.len() == wanted.len()
            && own.iter().zip(&wanted).all(|(own, wanted)| wanted == "*" || own == wanted)
    }
}

/// Returns the requests among the effects.
pub fn requests(effects: &[Effect]) -> Vec<SentRequest> {
    effects.iter().filter_map(SentRequest::of).collect()
}

/// Returns the only effect, which is a request.
#[track_caller]
pub fn only_request(effects: &[Effect]) -> SentRequest {
    assert_eq!(effects.len(), 1, "{effects:?}");
    last_request(effects)
}

/// Returns the last effect, which is a request.
#[track_caller]
pub fn last_request(effects: &[Effect]) -> SentRequest {
    effects.last().and_then(SentRequest::of).unwrap_or_else(|| panic!("{effects:?}"))
}

/// Returns whether an effect reads this path; `*` is any segment.
pub fn is_get(effect: &Effect, path: &str) -> bool {
    SentRequest::of(effect).is_some_and(|it| it.gets(path))
}

/// Returns whether the effects are these: the paths of requests that read, and the names of others.
pub fn are(effects: &[Effect], wanted: &[&str]) -> bool {
    let is = |(effect, wanted): (&Effect, &&str)| {
        if wanted.starts_with('/') {
            is_get(effect, wanted)
        } else {
            format!("{effect:?}").starts_with(wanted)
        }
    };
    effects.len() == wanted.len() && effects.iter().zip(wanted).all(is)
}

/// Returns the effects without the requests for the count of pending approvals, which every screen shows.
pub fn without_count(effects: Vec<Effect>) -> Vec<Effect> {
    let is_count = |effect: &Effect| {
        SentRequest::of(effect)
            .is_some_and(|sent| matches!(sent.param("status"), Some("ab_passed" | "pending_approval")))
    };
    effects.into_iter().filter(|effect| !is_count(effect)).collect()
}

/// Returns the change that a dialog sent with these effects.
pub fn sent_changes<C: Change + Clone>(state: &App, effects: &[Effect]) -> Vec<C> {
    let writes = requests(effects).into_iter().filter(|it| it.method != "GET").count();
    let Some(Dialog { phase: Phase::Sending { change, .. }, .. }) = &state.shell.dialog else {
        assert_eq!(writes, 0, "{effects:?}");
        return Vec::new();
    };
    let change: &dyn std::any::Any = &**change;
    vec![change.downcast_ref::<C>().expect("a change of another screen").clone(); writes]
}

pub fn me_request(effects: &[Effect]) -> u64 {
    requests(effects).iter().find(|it| it.gets("/v1/me")).unwrap().id
}

/// Answers the request for traces among the effects.
pub fn answer(state: &mut App, effects: &[Effect], page: TraceList) -> Vec<Effect> {
    reply(state, effects, Ok(Response::new(page)))
}

/// Answers the last request among the effects.
pub fn reply(state: &mut App, effects: &[Effect], result: Result<Response, NetError>) -> Vec<Effect> {
    let request = requests(effects).pop().expect("no request").id;
    update(state, Msg::Reply(request, result))
}

/// Starts a request of the list of traces.
pub fn start_list_request(state: &mut App, purpose: TracesRequest) -> u64 {
    let ticket = state.shell.ticket();
    state.screens.traces.pending.start(ticket, purpose)
}

pub fn page(traces: Vec<Trace>) -> TraceList {
    TraceList { traces, has_more: true, next_cursor: Some("older".into()) }
}

pub fn last_page(traces: Vec<Trace>) -> TraceList {
    TraceList { traces, has_more: false, next_cursor: None }
}

pub fn rows() -> Vec<Trace> {
    let mut rows: Vec<Trace> = (0..40).map(trace).collect();
    for (at, row) in rows.iter_mut().enumerate() {
        match at % 5 {
            1 => {
                row.name = Some("refund_agent".into());
                row.model = Some("claude-sonnet-4-20250514".into());
                row.error = Some("upstream timeout after 30000 ms".into());
                row.latency_ms = Some(30_000);
                row.cost = None;
            }
            2 => {
                row.name = Some("summarise_レポート_の要約を作成するエージェント".into());
                row.latency_ms = Some(6_710);
                row.total_token_count = 118_700;
            }
            3 => {
                row.name = Some("embed_docs 🙏🏽 👩‍👩‍👧".into());
                row.model = Some("text-embed-3".into());
                row.latency_ms = Some(96);
                row.tags = vec!["env:stage\u{1b}[31m".into()];
            }
            _ => {}
        }
    }
    rows
}

/// Returns the trace of the failed refund.
pub fn refund() -> Trace {
    let mut trace = rows().remove(36);
    let raw = |text: &str| RawValue::from_string(text.to_owned()).ok();
    let at = |mut span: Span, name: &str, kind: &str, from: i64, ms: i64| {
        span.name = name.into();
        span.kind = kind.to_owned().into();
        span.trace_id = trace.id;
        span.start_time = Timestamp::from_micros(BASE_MICROS + from * 1_000);
        span.end_time = Some(Timestamp::from_micros(BASE_MICROS + (from + ms) * 1_000));
        span.latency_ms = Some(ms);
        span
    };
    let mut spans = vec![
        at(span(101, None), "refund_agent", "other", 0, 30_000),
        at(span(102, Some(101)), "plan", "llm", 10, 1_310),
        at(span(103, Some(101)), "lookup_order", "tool", 1_400, 420),
        at(span(104, Some(101)), "retrieve_policy 返金規定", "retrieval", 1_900, 610),
        at(span(105, Some(104)), "embed_query", "llm", 1_910, 110),
        at(span(106, Some(104)), "vector_search", "retrieval", 2_030, 440),
        at(span(107, Some(101)), "decide_refund", "llm", 2_500, 27_500),
        at(span(108, Some(999)), "orphan", "guardrail", 2_600, 1),
    ];
    spans[1].prompt_tokens = Some(1_204);
    spans[1].cost = Some(0.0096);
    spans[0].error = trace.error.clone();
    spans[6].error = Some("upstream timeout after 30000 ms\nat provider.call (client.py:88)".into());
    spans[6].failure_type = Some("timeout".into());
    spans[6].metadata = raw("{\"gen_ai.system\": \"anthropic\", \"retries\": 2}");
    spans[6].input = Some(
        serde_json::json!({"model": "claude-sonnet", "messages": [
            {"role": "system", "content": "You decide refunds. ".repeat(90)},
            {"role": "user", "content": "Где мой возврат? 🙏 order \u{1b}[31m58113 — купил в марте, хочу вернуть деньги на карту"}
        ], "max_tokens": 1024})
        .to_string(),
    );
    trace.spans = Some(spans);
    trace
}

/// Returns a console with the failed refund opened.
pub fn opened(size: (u16, u16), theme: Theme) -> App {
    let mut state = filled(size, theme);
    press(&mut state, "jjj");
    let effects = key(&mut state, KeyCode::Enter);
    reply(&mut state, &effects, Ok(Response::new(refund())));
    state
}

pub fn press(state: &mut App, keys: &str) -> Vec<Effect> {
    keys.chars().flat_map(|c| key(state, KeyCode::Char(c))).collect()
}

pub fn key(state: &mut App, code: KeyCode) -> Vec<Effect> {
    update(state, Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

/// Moves the clock. An open stream brings its heartbeats during a longer jump.
pub fn tick(state: &mut App, seconds: i64) -> Vec<Effect> {
    let now = Timestamp::from_micros(state.shell.now.micros() + seconds * 1_000_000);
    if state.shell.link == Link::Streaming && seconds >= 15 {
        state.shell.heard = Some(now);
    }
    update(state, Msg::Tick(now))
}

pub fn offline() -> NetError {
    NetError {
        message: "can't reach https://loupe.example: connection refused".into(),
        ..NetError::default()
    }
}

pub fn answered(status: u16, code: &str, message: &str) -> NetError {
    NetError {
        status: Some(status),
        code: Some(code.into()),
        message: message.into(),
        request_id: Some("req-1".into()),
        required_plan: None,
        retry_after: None,
        not_api: false,
    }
}
