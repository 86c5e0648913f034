//! The listeners of this process, which tenants must not reach through it.
//!
//! They may trust clients on this machine, such as a proxy or a metrics scraper, and a request by this
//! process would come from this machine.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::{PoisonError, RwLock},
};

/// The addresses that this process listens on.
pub struct OwnListeners(RwLock<Vec<SocketAddr>>);

impl OwnListeners {
    /// Creates the list with the configured listeners.
    pub fn new(listeners: Vec<SocketAddr>) -> Self {
        Self(RwLock::new(listeners))
    }

    /// Adds a listener.
    pub fn add(&self, listener: SocketAddr) {
        let mut listeners = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !listeners.contains(&listener) {
            listeners.push(listener);
        }
    }

    /// Whether a connection to this address and port would reach a listener of this process.
    pub fn contains(&self, ip: IpAddr, port: u16) -> bool {
        let reached = reached(ip);
        let listeners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().filter(|it| it.port() == port).any(|it| match it.ip().to_canonical() {
            every if every.is_unspecified() => is_of_this_machine(reached),
            one => one == reached,
        })
    }
}

/// Returns the address that a connection to this one reaches: an IPv4 address may be written as IPv6,
/// and the unspecified address means this machine.
fn reached(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// Whether this machine has the address. A listener on 0.0.0.0 or [::] is reached at all addresses of
/// the machine, which may change; so the system is asked, by binding a socket that sends nothing. Only
/// a definite "no" counts.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback()
        || !UdpSocket::bind((ip, 0)).is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
}
