//! Limits the connections that have not presented a valid token yet.
//!
//! Their number is fixed, and with it their memory, because a request head has at most
//! `request_head::MAX_HEAD_BYTES`. When the limit is reached, a new connection displaces
//! the oldest connection of the address that has the most. An address that opens many connections displaces
//! its own, and a client with a valid token never waits for clients without one. The addresses are those of
//! [`ClientAddress::bucket_key`]: an IPv6 network of 64 bits is one address.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::client_address::ClientAddress;

/// Maximum number of connections without a valid token that a listener keeps open.
pub const MAX_UNAUTHENTICATED_CONNECTIONS: usize = 512;
/// How long a connection is safe from displacement, so that it can send its first request head.
const MIN_CONNECTION_AGE: Duration = Duration::from_millis(100);

/// The connections of a listener that have not presented a valid token.
#[derive(Debug)]
pub struct UnauthenticatedConnections {
    connections: Mutex<ConnectionTable>,
    max: usize,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    next_id: u64,
    count: usize,
    /// Connections by address, then by age: IDs increase.
    by_address: HashMap<IpAddr, BTreeMap<u64, UnauthenticatedConnection>>,
}

#[derive(Debug)]
struct UnauthenticatedConnection {
    opened_at: Instant,
    displaced: CancellationToken,
    /// Number of requests whose token is being checked.
    token_checks: usize,
}

/// The place of a connection. It becomes free when the value is dropped or the connection presents a valid
/// token. Every request carries it as an extension.
#[derive(Clone, Debug)]
pub struct ConnectionSlot(Arc<SlotState>);

#[derive(Debug)]
struct SlotState {
    budget: Arc<UnauthenticatedConnections>,
    address: IpAddr,
    id: u64,
    displaced: CancellationToken,
}

/// Protects a connection from displacement while its token is checked.
#[derive(Debug)]
pub struct TokenCheck(ConnectionSlot);

impl UnauthenticatedConnections {
    /// Creates a limit of `max` connections.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { connections: Mutex::default(), max })
    }

    /// Adds a connection from `peer`. Waits while the connection to displace was opened a moment ago, or
    /// while the tokens of all connections are being checked.
    pub async fn admit(self: &Arc<Self>, peer: IpAddr) -> ConnectionSlot {
        loop {
            match self.try_admit(peer, Instant::now()) {
                Ok(slot) => return slot,
                Err(wait) => tokio::time::sleep(wait).await,
            }
        }
    }

    fn try_admit(self: &Arc<Self>, peer: IpAddr, now: Instant) -> Result<ConnectionSlot, Duration> {
        let address = ClientAddress(peer.to_canonical()).bucket_key();
        let mut connections = self.lock();
        if connections.count >= self.max {
            connections.displace(now)?;
        }
        let id = connections.next_id;
        connections.next_id += 1;
        connections.count += 1;
        let displaced = CancellationToken::new();
        let connection =
            UnauthenticatedConnection { opened_at: now, displaced: displaced.clone(), token_checks: 0 };
        connections.by_address.entry(address).or_default().insert(id, connection);
        Ok(ConnectionSlot(Arc::new(SlotState { budget: Arc::clone(self), address, id, displaced })))
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionTable> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionTable {
    /// Closes the oldest connection of the address that has the most, or returns how long to wait.
    /// Connections whose token is being checked stay open; if an address has no others, the next address
    /// is tried.
    fn displace(&mut self, now: Instant) -> Result<(), Duration> {
        let candidates = self.by_address.iter().filter_map(|(address, connections_of_address)| {
            let (id, oldest) = connections_of_address.iter().find(|it| it.1.token_checks == 0)?;
            Some((connections_of_address.len(), Reverse(*id), *address, oldest))
        });
        // Of addresses with the same number, the one with the oldest connection is chosen. If that
        // connection is too young, the caller waits until it can be displaced: otherwise the busiest
        // address would displace the connections of all others.
        let Some((_, Reverse(id), address, oldest)) = candidates.max_by_key(|it| (it.0, it.1)) else {
            return Err(MIN_CONNECTION_AGE);
        };
        let age = now.saturating_duration_since(oldest.opened_at);
        if age < MIN_CONNECTION_AGE {
            return Err(MIN_CONNECTION_AGE - age);
        }
        oldest.displaced.cancel();
        self.remove(address, id);
        Ok(())
    }

    fn remove(&mut self, address: IpAddr, id: u64) {
        let Some(connections_of_address) = self.by_address.get_mut(&address) else { return };
        if connections_of_address.remove(&id).is_some() {
            self.count -= 1;
        }
        if connections_of_address.is_empty() {
            self.by_address.remove(&address);
        }
    }
}

impl ConnectionSlot {
    /// Frees the place because the connection has presented a valid token.
    pub fn release(&self) {
        self.0.release();
    }

    /// Protects the connection from displacement until the returned value is dropped.
    pub fn protect(&self) -> TokenCheck {
        self.change_token_checks(|it| it + 1);
        TokenCheck(self.clone())
    }

    /// Waits until another connection takes this one's place.
    pub async fn wait_until_displaced(&self) {
        self.0.displaced.cancelled().await;
    }

    fn change_token_checks(&self, changed: impl FnOnce(usize) -> usize) {
        let mut connections = self.0.budget.lock();
        let connections_of_address = connections.by_address.get_mut(&self.0.address);
        if let Some(connection) = connections_of_address.and_then(|it| it.get_mut(&self.0.id)) {
            connection.token_checks = changed(connection.token_checks);
        }
    }
}

impl Drop for TokenCheck {
    fn drop(&mut self) {
        self.0.change_token_checks(|it| it.saturating_sub(1));
    }
}

impl SlotState {
    fn release(&self) {
        self.budget.lock().remove(self.address, self.id);
    }
}

impl Drop for SlotState {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[test]
    fn oldest_connection_of_busiest_address_is_displaced() {
        let (budget, start) = (UnauthenticatedConnections::new(4), Instant::now());
        let other = budget.try_admit(address(2), start).unwrap();
        let own: Vec<ConnectionSlot> = (0..3).map(|_| budget.try_admit(address(1), start).unwrap()).collect();
        let later = start + MIN_CONNECTION_AGE;
        let new = budget.try_admit(address(3), later).unwrap();
        let displaced = |it: &ConnectionSlot| it.0.displaced.is_cancelled();
        assert!(displaced(&own[0]) && !displaced(&own[1]) && !displaced(&other) && !displaced(&new));
        assert_eq!(budget.lock().count, 4);
    }

    #[test]
    fn young_and_authenticating_connections_are_not_displaced() {
        let (budget, start) = (UnauthenticatedConnections::new(2), Instant::now());
        let first = budget.try_admit(address(1), start).unwrap();
        let second = budget.try_admit(address(1), start).unwrap();
        assert_eq!(budget.try_admit(address(2), start).unwrap_err(), MIN_CONNECTION_AGE);
        let checking = first.protect();
        // Another request of the connection was checked meanwhile.
        drop(first.protect());
        let _third = budget.try_admit(address(2), start + MIN_CONNECTION_AGE).unwrap();
        assert!(!first.0.displaced.is_cancelled() && second.0.displaced.is_cancelled());
        drop(checking);
        let _fourth = budget.try_admit(address(3), start + 2 * MIN_CONNECTION_AGE).unwrap();
        assert_eq!(budget.lock().count, 2);
    }

    #[test]
    fn address_whose_tokens_are_all_checked_is_skipped() {
        let (budget, start) = (UnauthenticatedConnections::new(3), Instant::now());
        let busy: Vec<ConnectionSlot> =
            (0..2).map(|_| budget.try_admit(address(1), start).unwrap()).collect();
        let other = budget.try_admit(address(2), start).unwrap();
        let _checking: Vec<TokenCheck> = busy.iter().map(ConnectionSlot::protect).collect();
        let _new = budget.try_admit(address(3), start + MIN_CONNECTION_AGE).unwrap();
        assert!(other.0.displaced.is_cancelled());
        assert!(busy.iter().all(|it| !it.0.displaced.is_cancelled()));
    }

    #[test]
    fn ipv6_network_of_64_bits_counts_as_one_address() {
        let (budget, start) = (UnauthenticatedConnections::new(3), Instant::now());
        let ipv6 = |it: &str| it.parse::<IpAddr>().unwrap();
        // The oldest connection has an address of its own.
        let other = budget.try_admit(ipv6("2001:db8:0:1::1"), start).unwrap();
        let first = budget.try_admit(ipv6("2001:db8:0:2::1"), start).unwrap();
        let second = budget.try_admit(ipv6("2001:db8:0:2:ffff::2"), start).unwrap();
        let _new = budget.try_admit(ipv6("2001:db8:0:3::1"), start + MIN_CONNECTION_AGE).unwrap();
        let displaced = |it: &ConnectionSlot| it.0.displaced.is_cancelled();
        assert!(displaced(&first) && !displaced(&second) && !displaced(&other));
    }

    #[test]
    fn authenticated_and_closed_connections_free_their_place() {
        let (budget, start) = (UnauthenticatedConnections::new(1), Instant::now());
        let first = budget.try_admit(address(1), start).unwrap();
        first.release();
        let second = budget.try_admit(address(1), start).unwrap();
        drop(second);
        let third = budget.try_admit(address(1), start).unwrap();
        drop(first);
        assert_eq!(budget.lock().count, 1);
        drop(third);
        assert!(budget.lock().by_address.is_empty());
    }
}
