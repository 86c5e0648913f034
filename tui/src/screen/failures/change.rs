//! The change of a failure cluster: its status.

use api::{
    client::{Auth, calls},
    failure::{ClusterStatus, FailureCluster},
};
use uuid::Uuid;

use super::{state::Failures, update::load_clusters};
use crate::{
    change::{Change, ChangeOutcome, CheckContext, SentState},
    net::{Effect, NetError, Request, RequestId, Response},
    shell::{ScreenChanges, Shell},
};

/// Gives a cluster a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterChange {
    /// The id.
    pub id: Uuid,
    /// The title.
    pub name: String,
    /// The new status.
    pub status: ClusterStatus,
}

impl Change for ClusterChange {
    fn title(&self) -> &'static str {
        match self.status {
            ClusterStatus::Open => "Open a cluster again",
            ClusterStatus::Resolved => "Resolve a cluster",
            ClusterStatus::Muted => "Mute a cluster",
        }
    }

    fn verb(&self) -> &'static str {
        match self.status {
            ClusterStatus::Open => "Open",
            ClusterStatus::Resolved => "Resolve",
            ClusterStatus::Muted => "Mute",
        }
    }

    fn consequences(&self) -> &'static str {
        match self.status {
            ClusterStatus::Open => "The cluster needs attention, and its failures fire failure rules.",
            ClusterStatus::Resolved => {
                "The cluster counts as solved. It opens again when such a failure occurs."
            }
            ClusterStatus::Muted => {
                "Its failures are still counted, but fire no failure rule and reach no webhook."
            }
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> Option<Uuid> {
        Some(self.id)
    }

    fn done(&self) -> String {
        format!("the cluster is {}", self.status)
    }

    // The endpoint accepts a session token only, as its call declares.
    fn request(&self, request: RequestId, _auth: Auth) -> Request {
        Request::new(request, calls::update_failure_cluster(self.id, self.status))
    }

    fn check(&self, request: RequestId, _context: CheckContext) -> Option<Request> {
        Some(Request::new(request, calls::failure_cluster(self.id)))
    }
}

impl ScreenChanges for Failures {
    type Change = ClusterChange;

    fn changed(
        &mut self,
        shell: &mut Shell,
        change: &ClusterChange,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        self.revise(response.decoded()?);
        shell.notify(change.done());
        Ok(load_clusters(self, shell))
    }

    fn checked(
        &mut self,
        shell: &mut Shell,
        change: &ClusterChange,
        _sent: SentState<'_>,
        response: Response,
    ) -> Result<(ChangeOutcome, Vec<Effect>), NetError> {
        let cluster: FailureCluster = response.decoded()?;
        let outcome = ChangeOutcome::of(cluster.status == change.status);
        self.revise(cluster);
        Ok((outcome, load_clusters(self, shell)))
    }

    fn change_refused(&mut self, shell: &mut Shell, _change: &ClusterChange) -> Vec<Effect> {
        load_clusters(self, shell)
    }
}
