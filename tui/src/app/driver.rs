//! The loop between terminal, clock, server and `update`.
//!
//! Only the driver waits. Each request is a task that reports over one channel, so a slow
//! server never delays a key.

use std::{io, ops::ControlFlow, path::PathBuf, time::Duration};

use api::{Timestamp, client::Client};
use chrono::Utc;
use crossterm::{
    clipboard::CopyToClipboard,
    event::{Event, EventStream},
    execute,
};
use futures::StreamExt;
use ratatui::{Terminal, backend::CrosstermBackend};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

pub use crate::net::server::connect;

use crate::{
    app::{App, update::update, view::draw},
    net::{Effect, Msg, StreamEvent, server::Server},
    options::Connection,
    terminal,
};

/// Time between two frames; a burst of traces is drawn once.
const FRAME_INTERVAL: Duration = Duration::from_millis(16);
/// Maximum number of messages that are handled before the next frame.
const MAX_BATCHED_MESSAGES: usize = 1_000;

/// Runs until the user quits. `contexts` are the contexts to switch to, `state_dir` is the folder of the
/// bookmarks, `effects` are performed first.
///
/// # Errors
/// The terminal cannot be read or drawn to.
pub async fn run(
    client: Client,
    contexts: Vec<Connection>,
    state_dir: Option<PathBuf>,
    app: &mut App,
    terminal: &mut Terminal<CrosstermBackend<io::Stdout>>,
    effects: Vec<Effect>,
) -> anyhow::Result<()> {
    let (sender, mut inbox) = unbounded_channel();
    let server = Server::new(Ok(client), sender);
    let mut driver = Driver { server, contexts, state_dir };
    if driver.perform(effects, terminal)?.is_break() {
        return Ok(());
    }
    let mut events = EventStream::new();
    let mut clock = interval(Duration::from_secs(1));
    clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut hangup = Hangup::new()?;
    terminal.draw(|frame| draw(app, frame))?;
    let mut drawn = Instant::now();
    loop {
        let msg = tokio::select! {
            event = events.next() => match event {
                Some(event) => message(event?),
                // The terminal is gone.
                None => return Ok(()),
            },
            Some(msg) = inbox.recv() => Some(msg),
            // The caller restores the terminal.
            () = hangup.wait() => return Ok(()),
            _ = clock.tick() => Some(Msg::Tick(now())),
        };
        let Some(msg) = msg else { continue };
        if matches!(msg, Msg::Stream(..)) {
            // All messages of a burst are handled before one frame, so a key waits for one frame at most.
            sleep_until(drawn + FRAME_INTERVAL).await;
        }
        for msg in gather(&mut inbox, msg) {
            // A dialog needs the time more precisely than the clock ticks.
            let mut effects =
                if matches!(msg, Msg::Key(_)) { update(app, Msg::Tick(now())) } else { Vec::new() };
            effects.extend(update(app, msg));
            if driver.perform(effects, terminal)?.is_break() {
                return Ok(());
            }
        }
        terminal.draw(|frame| draw(app, frame))?;
        drawn = Instant::now();
    }
}

/// Returns a message and those that already arrived. Consecutive traces of one stream become one message.
fn gather(inbox: &mut UnboundedReceiver<Msg>, first: Msg) -> Vec<Msg> {
    let mut msgs = vec![first];
    for _ in 0..MAX_BATCHED_MESSAGES {
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

/// Returns the time. No other code of the console reads the clock.
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

/// Other systems end the terminal with its window.
#[cfg(not(unix))]
struct NoHangup;

#[cfg(not(unix))]
use NoHangup as Hangup;

#[cfg(not(unix))]
impl NoHangup {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn wait(&mut self) {
        std::future::pending().await
    }
}

struct Driver {
    server: Server,
    /// The contexts by number.
    contexts: Vec<Connection>,
    /// Folder of the stored bookmarks.
    state_dir: Option<PathBuf>,
}

impl Driver {
    fn perform(
        &mut self,
        effects: Vec<Effect>,
        terminal: &mut Terminal<CrosstermBackend<io::Stdout>>,
    ) -> anyhow::Result<ControlFlow<()>> {
        for effect in effects {
            match effect {
                Effect::Quit => return Ok(ControlFlow::Break(())),
                Effect::Copy(text) => execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))?,
                Effect::Redraw => terminal.clear()?,
                Effect::Suspend => {
                    terminal::suspend()?;
                    terminal.clear()?;
                    // The window may have been resized while the shell had the terminal.
                    let (cols, rows) = crossterm::terminal::size()?;
                    self.server.tell(Msg::Resize(cols, rows));
                }
                Effect::Connect(number) => {
                    if let Some(connection) = self.contexts.get(number) {
                        self.server = self.server.moved(connect(connection));
                    }
                }
                Effect::KeepBookmarks(bookmarks) => {
                    // The file is small, and tasks could overtake each other.
                    let kept = self.state_dir.as_deref().map_or(Ok(()), |dir| bookmarks.save(dir));
                    if let Err(error) = kept {
                        let why = api::plain::io_error(&error);
                        self.server.tell(Msg::Written(Err(format!("the bookmarks can't be stored: {why}"))));
                    }
                }
                request => self.server.perform(request),
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
