//! The requests of a screen, and the routing of their responses.

use api::Timestamp;

use super::{Pending, Shell};
use crate::net::{Effect, NetError, RequestId, Response};

/// The purpose of a request of a screen.
pub trait RequestPurpose: Copy {
    /// Returns whether the user waits for the response, so that the console shows that it is loading.
    fn is_shown(self) -> bool {
        true
    }
}

/// The requests of a screen. A request is a call of the API and a purpose; its response has the type that the
/// call declares.
pub trait ScreenRequests {
    /// The purposes of the requests.
    type Purpose: RequestPurpose;

    /// Returns the open requests.
    fn pending(&self) -> &Pending<Self::Purpose>;

    /// Returns the open requests.
    fn pending_mut(&mut self) -> &mut Pending<Self::Purpose>;

    /// Stores the response to a request that was sent at this instant.
    ///
    /// # Errors
    /// Fails when the response has another type than the purpose; it is handled like a failed request.
    fn fill(
        &mut self,
        shell: &mut Shell,
        purpose: Self::Purpose,
        sent: Timestamp,
        response: Response,
    ) -> Result<Vec<Effect>, NetError>;

    /// Handles a failed request.
    fn fail(&mut self, shell: &mut Shell, purpose: Self::Purpose, error: NetError) -> Vec<Effect>;
}

/// The requests of any screen, without their purposes. Every [`ScreenRequests`] has it.
pub trait ScreenReplies {
    /// Returns whether the screen sent a request that is still open.
    fn owns(&self, request: RequestId) -> bool;

    /// Returns whether one of the screen's open requests has taken long enough to show it.
    fn is_busy(&self, shell: &Shell) -> bool;

    /// Handles the end of one of the screen's requests. A response whose request was superseded is dropped.
    fn reply(
        &mut self,
        shell: &mut Shell,
        request: RequestId,
        result: Result<Response, NetError>,
    ) -> Vec<Effect>;
}

impl<S: ScreenRequests> ScreenReplies for S {
    fn owns(&self, request: RequestId) -> bool {
        self.pending().owns(request)
    }

    fn is_busy(&self, shell: &Shell) -> bool {
        self.pending().is_slow(shell.busy_before(), |purpose| purpose.is_shown())
    }

    fn reply(
        &mut self,
        shell: &mut Shell,
        request: RequestId,
        result: Result<Response, NetError>,
    ) -> Vec<Effect> {
        let Some((purpose, sent)) = self.pending_mut().finish(request) else { return Vec::new() };
        let result = result.and_then(|response| self.fill(shell, purpose, sent, response));
        result.unwrap_or_else(|error| self.fail(shell, purpose, error))
    }
}
