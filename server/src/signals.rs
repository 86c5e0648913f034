//! Signals that stop the program.

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listeners for the signals that stop the program. They listen from their creation, so that no signal is lost
/// between two waits.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    /// The terminal was closed.
    #[cfg(unix)]
    hangup: Option<Signal>,
}

impl Signals {
    /// Handles Ctrl-C and SIGTERM.
    ///
    /// # Errors
    ///
    /// Fails when the system does not allow it.
    #[cfg(unix)]
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// Also handles SIGHUP, for a program that ends with its terminal. A server does not, because it
    /// may have been started with `nohup`.
    ///
    /// # Errors
    ///
    /// Fails when the system does not allow it.
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there is no such signal"))]
    pub fn with_hangup(mut self) -> std::io::Result<Self> {
        #[cfg(unix)]
        {
            self.hangup = Some(signal(SignalKind::hangup())?);
        }
        Ok(self)
    }

    /// Handles Ctrl-C.
    #[cfg(not(unix))]
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next signal.
    #[cfg(unix)]
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = closed(&mut self.hangup) => {}
        }
    }

    /// Waits for the next signal.
    #[cfg(not(unix))]
    pub async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(unix)]
async fn closed(hangup: &mut Option<Signal>) {
    match hangup {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}
