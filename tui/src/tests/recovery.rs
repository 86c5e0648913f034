//! Errors, failures and silence of a server, over real sockets. The test controls the clock, so half a
//! minute passes at once.

use std::{net::TcpListener, time::Duration};

use stub::{ResponseSwitch, StubResponse, StubServer};
use tokio::{sync::mpsc, time::timeout};

use crate::{
    net::server::{self, connect},
    options::Connection,
    shell::{Purpose, freshness},
};
use crate::{tests::screens::screen, tests::*};

/// Returns an error response, with the plan that the console names.
fn error(status: u16, code: &str) -> StubResponse {
    let body = serde_json::json!({ "error": format!("it is {code}"), "code": code, "request_id": "req-1",
        "required_plan": (status == 402).then_some("pro") });
    StubResponse::status(status, body)
}

fn traces(count: i64) -> StubResponse {
    let page = last_page((0..count).map(trace).collect());
    StubResponse::json(serde_json::to_value(&page).unwrap())
}

fn html(status: u16) -> StubResponse {
    StubResponse::text("text/html", "<html><body>Sign in to the proxy</body></html>").with_status(status)
}

/// A server whose response to requests for the list changes during the test.
struct SwitchedServer {
    stub: StubServer,
    list: ResponseSwitch,
}

impl SwitchedServer {
    fn new(list: StubResponse) -> Self {
        Self::start(list, false)
    }

    /// Starts a server that opens live streams and sends no event on them.
    fn with_streams(list: StubResponse) -> Self {
        Self::start(list, true)
    }

    fn start(list: StubResponse, streams: bool) -> Self {
        let list = ResponseSwitch::new(list);
        let current = list.clone();
        let stub = StubServer::new(move |request, _| match request.path.as_str() {
            "/v1/traces" => current.current(),
            "/v1/traces/stream" if streams => StubResponse::events(&[": hello\n\n".to_owned()]).held_open(),
            _ => error(404, "not_found"),
        });
        Self { stub, list }
    }

    fn url(&self) -> &str {
        self.stub.url()
    }

    fn turn(&self, list: StubResponse) {
        self.list.set(list);
    }
}

/// The console without a terminal: its state, its requests, and the test's clock.
struct Console {
    state: App,
    requests: server::Server,
    inbox: mpsc::UnboundedReceiver<Msg>,
}

impl Console {
    fn new(url: &str) -> Self {
        let connection =
            Connection { url: url.to_owned(), api_key: Some("lp_test".into()), ..Connection::default() };
        let (sender, inbox) = mpsc::unbounded_channel();
        let requests = server::Server::new(connect(&connection), sender);
        let now = Timestamp::from_micros(BASE_MICROS + 60_000_000);
        let mut state = App::new(Target::of(&connection), UNICODE_THEME, Zone::Utc, now, (80, 24));
        let effects = start(&mut state, &Options::default());
        let mut console = Self { state, requests, inbox };
        console.perform(effects);
        console
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        effects.into_iter().for_each(|effect| self.requests.perform(effect));
    }

    fn pass(&mut self, seconds: i64) {
        for _ in 0..seconds {
            let effects = tick(&mut self.state, 1);
            self.perform(effects);
        }
    }

    fn asks_for_the_list(&self) -> bool {
        let lookup = self.state.shell.pending.has(|it| *it == Purpose::Lookup);
        lookup || self.state.screens.traces.pending.has(|it| it.is_of_feed())
    }

    /// Handles responses until no request for the list is open, with those that arrive meanwhile.
    async fn settle(&mut self) {
        loop {
            let patience = Duration::from_millis(if self.asks_for_the_list() { 10_000 } else { 150 });
            match timeout(patience, self.inbox.recv()).await {
                Ok(Some(msg)) => {
                    let effects = update(&mut self.state, msg);
                    self.perform(effects);
                }
                Ok(None) => panic!("the requests are gone"),
                Err(_) => {
                    assert!(!self.asks_for_the_list(), "no answer:\n{}", screen(&self.state));
                    return;
                }
            }
        }
    }

    fn header(&self) -> String {
        screen(&self.state).lines().next().unwrap().to_owned()
    }
}

/// Returns a response, and the console's description of it.
fn refusals() -> Vec<(StubResponse, &'static str, &'static str)> {
    vec![
        (error(401, "unauthorized"), "401 unauthorized", "loupe auth login"),
        (error(402, "plan_upgrade_required"), "402 plan", "requires the plan Pro"),
        (error(403, "member_removed"), "403 forbidden", "loupe members restore"),
        (error(403, "forbidden_role"), "403 forbidden", "another role or API key"),
        (error(404, "not_found"), "404 not found", "server is older"),
        (error(400, "invalid_filter"), "error 400", "changes the filter"),
        (html(200), "not the Loupe API", "an HTML page"),
        (html(200), "not the Loupe API", "Check the address: curl"),
        (html(404), "not the Loupe API", "a proxy, a login page"),
        (html(403), "not the Loupe API", "a proxy, a login page"),
        (StubResponse::json(serde_json::json!([1])), "not the Loupe API", "not understand"),
    ]
}

#[tokio::test]
async fn refusal_of_the_first_request_is_explained_and_probed_every_30_seconds() {
    for (response, label, hint) in refusals() {
        let server = SwitchedServer::new(response.clone());
        let mut console = Console::new(server.url());
        console.settle().await;
        let (header, text) = (console.header(), screen(&console.state));
        assert!(header.contains(&format!("NO DATA · {label}")), "{response:?}: {header}");
        assert!(text.contains(hint), "{response:?}: {hint}\n{text}");
        assert!(!text.contains("live") && !text.contains("following"), "{text}");

        console.pass(29);
        assert!(!console.asks_for_the_list(), "{response:?}: the request is repeated too early");
        server.turn(traces(3));
        console.pass(1);
        console.settle().await;
        console.state.shell.toast = None;
        let text = screen(&console.state);
        assert!(
            text.contains("answer_question") && text.contains("following newest"),
            "{response:?}:\n{text}"
        );
        assert!(console.header().contains("live 2s"), "{}", console.header());
    }
}

#[tokio::test]
async fn refusal_while_live_shows_a_stale_bar_and_the_console_recovers() {
    for (response, label, _) in refusals() {
        let server = SwitchedServer::new(traces(3));
        let mut console = Console::new(server.url());
        console.settle().await;
        assert!(freshness::is_live(&console.state.shell));

        server.turn(response.clone());
        console.pass(2);
        console.settle().await;
        let (header, text) = (console.header(), screen(&console.state));
        assert!(header.contains(&format!("STALE since 14:03 · {label} · retry 30s")), "{header}");
        assert!(text.contains("answer_question"), "the rows stay:\n{text}");
        assert!(!text.contains("live") && !text.contains("following"), "{response:?}:\n{text}");

        // The first probe is refused as well.
        console.pass(30);
        console.settle().await;
        assert!(console.header().contains("STALE since 14:03"), "{}", console.header());
        server.turn(traces(5));
        console.pass(30);
        console.settle().await;
        assert!(freshness::is_live(&console.state.shell), "{}", console.header());
        assert_eq!(console.state.screens.traces.list.len(), 5);
        assert!(console.state.shell.toast.as_ref().unwrap().text.starts_with("back after 01:00"));
    }
}

#[tokio::test]
async fn server_that_accepts_and_never_answers_is_reported_after_three_seconds() {
    let server = SwitchedServer::new(StubResponse::silence());
    let mut console = Console::new(server.url());
    console.pass(2);
    assert!(console.header().contains("connecting"), "{}", console.header());
    console.pass(1);
    let text = screen(&console.state);
    assert!(console.header().contains("NO DATA · no answer for 3s"), "{text}");
    assert!(text.contains(&format!("No answer from {} for 00:03.", server.url())), "{text}");

    server.turn(traces(2));
    let effects = press(&mut console.state, "R");
    console.perform(effects);
    console.settle().await;
    assert!(freshness::is_live(&console.state.shell), "{}", console.header());
    assert_eq!(console.state.screens.traces.list.len(), 2);
}

#[tokio::test]
async fn server_that_falls_silent_later_makes_the_list_stale() {
    let server = SwitchedServer::new(traces(2));
    let mut console = Console::new(server.url());
    console.settle().await;
    server.turn(StubResponse::silence());
    console.pass(2);
    assert!(console.asks_for_the_list() && freshness::is_live(&console.state.shell));
    console.pass(5);
    let text = screen(&console.state);
    assert!(console.header().contains("STALE since 14:03 · no answer for 5s"), "{text}");
    assert!(text.contains("not live") && !text.contains("following"), "{text}");
}

#[tokio::test]
async fn silent_stream_is_replaced_by_requests_when_a_heartbeat_is_overdue() {
    let server = SwitchedServer::with_streams(traces(2));
    let mut console = Console::new(server.url());
    console.settle().await;
    assert!(console.state.shell.link == Link::Streaming, "{}", console.header());
    console.pass(19);
    assert!(console.header().ends_with("live"), "{}", console.header());
    console.pass(1);
    assert!(console.asks_for_the_list() && console.state.shell.link == Link::Polling);
    console.settle().await;
    assert!(console.header().ends_with("live 2s"), "the server answers requests: {}", console.header());
    console.pass(16);
    console.settle().await;
    assert!(console.state.shell.link == Link::Streaming, "{}", console.header());

    server.turn(StubResponse::silence());
    console.pass(20);
    assert!(freshness::is_live(&console.state.shell), "{}", console.header());
    console.pass(5);
    assert!(console.header().contains("STALE since 14:03 · no answer for 5s"), "{}", console.header());
}

#[tokio::test]
async fn server_that_is_away_is_tried_again_after_growing_and_spread_waits() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut console = Console::new(&format!("http://{closed}"));
    let mut waits = Vec::new();
    for bound in [2, 4, 8, 16, 30, 30, 30, 30] {
        console.settle().await;
        assert!(console.header().contains("NO DATA · offline"), "{}", console.header());
        let wait = console.state.shell.next_poll.unwrap().micros() - console.state.shell.now.micros();
        assert!((bound * 500_000..=bound * 1_000_000).contains(&wait), "{wait} of {bound} s");
        waits.push(wait);
        console.pass(30);
    }
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() >= 7, "the waits are not spread: {waits:?}");
}

#[tokio::test]
async fn pages_of_a_gateway_pass_and_its_retry_after_is_bounded() {
    let server = SwitchedServer::new(html(502));
    let mut console = Console::new(server.url());
    console.settle().await;
    assert!(console.header().contains("error 502 · retry"), "{}", console.header());
    let limited = NetError { retry_after: Some(86_400), ..answered(429, "rate_limited", "slow down") };
    let request = start_list_request(&mut console.state, TracesRequest::Newest);
    update(&mut console.state, Msg::Reply(request, Err(limited)));
    assert_eq!(console.state.shell.seconds_until(console.state.shell.next_poll.unwrap()), 120);
    assert!(matches!(console.state.shell.link, Link::Down(_)));
}

#[tokio::test]
async fn file_that_cannot_be_written_is_explained_without_error_numbers() {
    let folder = std::env::temp_dir().join(format!("loupe-{}-missing", std::process::id()));
    for (path, reason) in
        [(folder.join("x"), "there is no such file or folder"), ("/".into(), "exists already")]
    {
        let mut console = Console::new("http://127.0.0.1:1");
        let path = path.display().to_string();
        console.requests.perform(Effect::Write {
            path: path.clone(),
            text: String::new(),
            notice: String::new(),
        });
        let text = loop {
            if let Msg::Written(written) = console.inbox.recv().await.unwrap() {
                break written.unwrap_err();
            }
        };
        assert!(text.starts_with(&path) && text.contains(reason) && !text.contains("os error"), "{text}");
    }
}
