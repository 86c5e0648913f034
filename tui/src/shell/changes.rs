//! The changes of a screen, and the routing of their responses.

use std::any::Any;

use super::Shell;
use crate::{
    change::{Change, ChangeOutcome, SentState},
    net::{Effect, NetError, Response},
};

/// The changes that a screen makes on the server, and their effect on its records. The dialog and the requests are the
/// same for all screens.
pub trait ScreenChanges {
    /// The changes; [`NoChange`](crate::change::NoChange) if the screen makes none.
    type Change: Change;

    /// Stores what the server returned for a change, and requests the lists that show it. The dialog is closed.
    ///
    /// # Errors
    /// Fails when the response has another type than the change; it is handled like a lost one.
    fn changed(
        &mut self,
        _shell: &mut Shell,
        _change: &Self::Change,
        _response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        Ok(Vec::new())
    }

    /// Stores the list that shows whether a change with a lost response happened.
    ///
    /// # Errors
    /// Fails when the response has another type than the list; it is handled like a failed request.
    fn checked(
        &mut self,
        _shell: &mut Shell,
        _change: &Self::Change,
        _sent: SentState<'_>,
        _response: Response,
    ) -> Result<(ChangeOutcome, Vec<Effect>), NetError> {
        Ok((ChangeOutcome::NotMade, Vec::new()))
    }

    /// Requests the lists that show a change, because the server refused it.
    fn change_refused(&mut self, _shell: &mut Shell, _change: &Self::Change) -> Vec<Effect> {
        Vec::new()
    }
}

/// The changes of any screen, without their type. Every [`ScreenChanges`] has it.
pub trait ScreenChangeReplies {
    /// Returns whether a change is one of the screen's.
    fn owns_change(&self, change: &dyn Change) -> bool;

    /// Handles the response to one of the screen's changes.
    ///
    /// # Errors
    /// Fails when the response has another type than the change.
    fn change_reply(
        &mut self,
        shell: &mut Shell,
        change: &dyn Change,
        response: Response,
    ) -> Result<Vec<Effect>, NetError>;

    /// Handles the list that shows whether one of the screen's changes happened.
    ///
    /// # Errors
    /// Fails when the response has another type than the list.
    fn check_reply(
        &mut self,
        shell: &mut Shell,
        change: &dyn Change,
        sent: SentState<'_>,
        response: Response,
    ) -> Result<(ChangeOutcome, Vec<Effect>), NetError>;

    /// Handles the refusal of one of the screen's changes.
    fn refusal(&mut self, shell: &mut Shell, change: &dyn Change) -> Vec<Effect>;
}

impl<S: ScreenChanges> ScreenChangeReplies for S {
    fn owns_change(&self, change: &dyn Change) -> bool {
        own::<S>(change).is_some()
    }

    fn change_reply(
        &mut self,
        shell: &mut Shell,
        change: &dyn Change,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        own::<S>(change).map_or_else(|| Ok(Vec::new()), |change| self.changed(shell, change, response))
    }

    fn check_reply(
        &mut self,
        shell: &mut Shell,
        change: &dyn Change,
        sent: SentState<'_>,
        response: Response,
    ) -> Result<(ChangeOutcome, Vec<Effect>), NetError> {
        match own::<S>(change) {
            Some(change) => self.checked(shell, change, sent, response),
            None => Ok((ChangeOutcome::NotMade, Vec::new())),
        }
    }

    fn refusal(&mut self, shell: &mut Shell, change: &dyn Change) -> Vec<Effect> {
        own::<S>(change).map_or_else(Vec::new, |change| self.change_refused(shell, change))
    }
}

fn own<S: ScreenChanges>(change: &dyn Change) -> Option<&S::Change> {
    let change: &dyn Any = change;
    change.downcast_ref()
}
