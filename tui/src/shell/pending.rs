//! Open requests and their purposes.

use std::mem::discriminant;

use api::{
    Timestamp,
    client::{Call, calls::Page},
};
use serde::de::DeserializeOwned;

use crate::net::{Effect, List, Request, RequestId};

/// The id of a new request and the time it is sent at.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    /// The id.
    pub id: RequestId,
    /// Time at which the request is sent.
    pub at: Timestamp,
}

/// The open requests of one owner. A response whose request is not among them was superseded.
#[derive(Debug)]
pub struct Pending<P>(Vec<(Ticket, P)>);

impl<P> Default for Pending<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P> Pending<P> {
    /// Sends a call for a purpose. Open requests for the same kind of purpose are superseded by it.
    pub fn send<T>(&mut self, ticket: Ticket, purpose: P, call: Call<T>) -> Effect
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        Effect::Request(Request::new(self.start(ticket, purpose), call))
    }

    /// Requests all pages of a list for a purpose. Open requests for the same kind of purpose are superseded by it.
    pub fn send_all<L, F>(&mut self, ticket: Ticket, purpose: P, call: F) -> Effect
    where
        L: List,
        F: Fn(&Page) -> Call<L> + Send + Sync + 'static,
    {
        Effect::Request(Request::all(self.start(ticket, purpose), call))
    }

    /// Adds a request. Open ones for the same kind of purpose are superseded by it.
    pub fn start(&mut self, ticket: Ticket, purpose: P) -> RequestId {
        self.0.retain(|(_, other)| discriminant(other) != discriminant(&purpose));
        self.0.push((ticket, purpose));
        ticket.id
    }

    /// Removes a request that has ended. Returns its purpose and when it was sent.
    pub fn finish(&mut self, request: RequestId) -> Option<(P, Timestamp)> {
        let at = self.0.iter().position(|(ticket, _)| ticket.id == request)?;
        let (ticket, purpose) = self.0.remove(at);
        Some((purpose, ticket.at))
    }

    /// Returns the ids of the open requests.
    #[cfg(test)]
    pub fn ids(&self) -> Vec<RequestId> {
        self.0.iter().map(|(ticket, _)| ticket.id).collect()
    }

    /// Returns whether a request is open.
    pub fn owns(&self, request: RequestId) -> bool {
        self.0.iter().any(|(ticket, _)| ticket.id == request)
    }

    /// Returns whether a request for such a purpose is open.
    pub fn has(&self, purpose: impl Fn(&P) -> bool) -> bool {
        self.0.iter().any(|(_, it)| purpose(it))
    }

    /// Abandons the requests for such purposes; their responses are dropped.
    pub fn abandon(&mut self, purpose: impl Fn(&P) -> bool) {
        self.0.retain(|(_, it)| !purpose(it));
    }

    /// Returns when the oldest open request for such a purpose was sent.
    pub fn oldest(&self, purpose: impl Fn(&P) -> bool) -> Option<Timestamp> {
        self.0.iter().filter(|(_, it)| purpose(it)).map(|(ticket, _)| ticket.at).min()
    }

    /// Returns whether a request for such a purpose was sent at or before an instant and is open.
    pub fn is_slow(&self, before: Timestamp, purpose: impl Fn(&P) -> bool) -> bool {
        self.oldest(purpose).is_some_and(|sent| sent <= before)
    }
}
