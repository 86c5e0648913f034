//! The loop between terminal, clock, server and `update`.
//!
//! Everything that waits happens here. Each request is a task of its own that reports back
//! over one channel, so a slow server never holds up a key.

use std::{io, time::Duration};

use api::{
    Timestamp,
    client::{self, Client, StreamEvent as Wire, calls},
    page::MAX_LIMIT,
    trace::Trace,
};
use chrono::Utc;
use crossterm::{
    clipboard::CopyToClipboard,
    event::{Event, EventStream},
    execute,
};
use futures::StreamExt;
use ratatui::{Terminal, backend::CrosstermBackend};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{AbortHandle, JoinSet},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use crate::{
    msg::{Effect, Msg, NetError, Query, RateLimit, Reply, RequestId, StreamEvent},
    state::State,
    terminal,
    update::update,
    view::draw,
};

/// Traces asked for at once.
const PAGE: u32 = 100;
/// Between two drawings; a burst of traces is drawn once.
const FRAME: Duration = Duration::from_millis(16);
/// Messages that are taken in before the next drawing.
const GATHERED: usize = 1_000;

/// Runs until the reader quits. `effects` are the first ones.
///
/// # Errors
/// When the terminal can't be read or drawn to.
pub async fn run(
    client: Client,
    state: &mut State,
    terminal: &mut Terminal<CrosstermBackend<io::Stdout>>,
    effects: Vec<Effect>,
) -> anyhow::Result<()> {
    let (sender, mut inbox) = unbounded_channel();
    let mut driver = Driver { client, sender, stream: None, tasks: JoinSet::new() };
    if driver.perform(effects, terminal)?.is_break() {
        return Ok(());
    }
    let mut events = EventStream::new();
    let mut clock = interval(Duration::from_secs(1));
    clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut hangup = Hangup::new()?;
    terminal.draw(|frame| draw(state, frame))?;
    let mut drawn = Instant::now();
    loop {
        let msg = tokio::select! {
            event = events.next() => match event {
                Some(event) => message(event?),
                // The terminal is gone.
                None => return Ok(()),
            },
            Some(msg) = inbox.recv() => Some(msg),
            // The caller gives the terminal back on the way out.
            () = hangup.wait() => return Ok(()),
            _ = clock.tick() => Some(Msg::Tick(now())),
        };
        let Some(msg) = msg else { continue };
        if matches!(msg, Msg::Stream(..)) {
            // A burst is taken in and drawn once per frame; keys wait no longer than that.
            sleep_until(drawn + FRAME).await;
        }
        for msg in gather(&mut inbox, msg) {
            let effects = update(state, msg);
            if driver.perform(effects, terminal)?.is_break() {
                return Ok(());
            }
        }
        terminal.draw(|frame| draw(state, frame))?;
        drawn = Instant::now();
    }
}

/// A message and those that are there already, neighbouring traces of one stream as one.
fn gather(inbox: &mut UnboundedReceiver<Msg>, first: Msg) -> Vec<Msg> {
    let mut msgs = vec![first];
    for _ in 0..GATHERED {
        let Ok(msg) = inbox.try_recv() else { break };
        match (msgs.last_mut(), msg) {
            (
                Some(Msg::Stream(one, StreamEvent::Traces(known))),
                Msg::Stream(other, StreamEvent::Traces(more)),
            ) if *one == other => {
                known.extend(more);
            }
            (_, msg) => msgs.push(msg),
        }
    }
    msgs
}

/// The time, which is handed to `update` and read nowhere else.
#[expect(clippy::disallowed_methods, reason = "the one clock of the console")]
pub fn now() -> Timestamp {
    Utc::now().into()
}

fn message(event: Event) -> Option<Msg> {
    match event {
        Event::Key(key) => Some(Msg::Key(key)),
        Event::Paste(text) => Some(Msg::Paste(text)),
        Event::Resize(cols, rows) => Some(Msg::Resize(cols, rows)),
        Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}

/// The signals that ask a process to end.
#[cfg(unix)]
struct Hangup(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Hangup {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self(signal(SignalKind::terminate())?, signal(SignalKind::hangup())?))
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

/// Elsewhere the terminal ends with its window.
#[cfg(not(unix))]
struct Hangup;

#[cfg(not(unix))]
impl Hangup {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn wait(&mut self) {
        std::future::pending().await
    }
}

struct Driver {
    client: Client,
    sender: UnboundedSender<Msg>,
    stream: Option<AbortHandle>,
    /// Every request under way; dropped with the driver, and the tasks with it.
    tasks: JoinSet<()>,
}

impl Driver {
    fn perform(
        &mut self,
        effects: Vec<Effect>,
        terminal: &mut Terminal<CrosstermBackend<io::Stdout>>,
    ) -> anyhow::Result<std::ops::ControlFlow<()>> {
        for effect in effects {
            match effect {
                Effect::Quit => return Ok(std::ops::ControlFlow::Break(())),
                Effect::Copy(text) => execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))?,
                Effect::Redraw => terminal.clear()?,
                Effect::Suspend => {
                    terminal::suspend()?;
                    terminal.clear()?;
                    // The window may have another size than when the shell took over.
                    let (cols, rows) = crossterm::terminal::size()?;
                    self.tell(Msg::Resize(cols, rows));
                }
                Effect::CloseStream => self.close(),
                Effect::OpenStream { request, query } => {
                    self.close();
                    let task = follow(self.client.clone(), query, request, self.sender.clone());
                    self.stream = Some(self.tasks.spawn(task));
                }
                Effect::LoadMe(request) => self.ask(request, calls::me(), |me| Reply::Me(Box::new(me))),
                Effect::LoadProjects(request) => {
                    let page = calls::Page { limit: Some(MAX_LIMIT), cursor: None };
                    self.ask(request, calls::projects(None, &page), |list| Reply::Projects(list.projects));
                }
                Effect::LoadTraces { request, query, cursor } => {
                    let page = calls::Page { limit: Some(PAGE), cursor };
                    self.ask(request, calls::traces(&query.filter, query.project, &page), Reply::Traces);
                }
                Effect::LoadTrace { request, id } => {
                    self.ask(request, calls::trace(&id.to_string()), |trace| Reply::Trace(Box::new(trace)));
                }
                Effect::LoadSpans { request, id, cursor } => {
                    let page = calls::Page { limit: Some(MAX_LIMIT), cursor: Some(cursor) };
                    self.ask(request, calls::spans(&id.to_string(), &page), Reply::Spans);
                }
            }
        }
        Ok(std::ops::ControlFlow::Continue(()))
    }

    fn tell(&self, msg: Msg) {
        // The receiver lives as long as the loop that would read this.
        let _ = self.sender.send(msg);
    }

    fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.abort();
        }
    }

    fn ask<T, F>(&mut self, request: RequestId, call: client::Call<T>, read: F)
    where
        T: serde::de::DeserializeOwned + Send + Sync + 'static,
        F: FnOnce(T) -> Reply + Send + 'static,
    {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        // Those that ended are let go, so that the set does not grow.
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async move {
            let result = client.send(&call).await.and_then(|answer| {
                if let Some((limit, remaining)) = answer.rate_limit() {
                    let _ = sender.send(Msg::Limit(RateLimit { limit, remaining }));
                }
                answer.json()
            });
            let _ = sender.send(Msg::Reply(request, result.map(read).map_err(net_error)));
        });
    }
}

/// Reads the live stream until it ends.
async fn follow(client: Client, query: Query, request: RequestId, sender: UnboundedSender<Msg>) {
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
            Some(Ok(Wire::Alive)) => {}
            Some(Ok(Wire::Trace { trace, .. })) => match serde_json::from_value::<Trace>(trace) {
                Ok(trace) => {
                    if !tell(StreamEvent::Traces(vec![trace])) {
                        return;
                    }
                }
                Err(error) => {
                    break NetError {
                        message: format!("the stream can't be read: {error}"),
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
        client::Error::Answer(answer) => NetError {
            status: Some(answer.status),
            code: Some(answer.code).filter(|code| !code.is_empty()),
            message: answer.message,
            request_id: answer.request_id,
            retry_after: answer.retry_after.map(|wait| wait.as_secs()),
        },
        // Nothing was sent, and nothing will be until there is a usable credential.
        client::Error::NoCredential { .. } | client::Error::BadCredential => {
            NetError { status: Some(401), message, ..NetError::default() }
        }
        // An answer came, only not one to go on with; asking again brings the same.
        client::Error::Unreadable { .. } => NetError { status: Some(200), message, ..NetError::default() },
        client::Error::Unreachable { .. } | client::Error::Address { .. } | client::Error::NotAStream => {
            NetError { message, ..NetError::default() }
        }
    }
}
