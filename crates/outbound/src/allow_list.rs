//! The operator's allow list of addresses that are not public. Pure.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

/// Addresses that tenants may use although they are not public.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {
    ranges: Vec<IpNet>,
    sockets: Vec<SocketAddr>,
}

/// An invalid entry of an allow list, with what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// The port is 0.
    #[error("`{0}`: port 0 is not valid")]
    PortZero(String),
    /// Neither a range nor an address.
    #[error(
        "`{0}`: write a range such as 10.0.0.0/8, an address, or an address and a port such as 10.0.0.7:11434 or [fd00::7]:11434"
    )]
    Syntax(String),
    /// A range with bits beyond its prefix length: 10.0.0.7/8 is more often a mistake for one address
    /// than a range of sixteen million.
    #[error("`{0}`: write {range} for the range, or {address} for the one address", range = .0.trunc(), address = .0.addr())]
    HostBits(IpNet),
}

impl AllowList {
    /// Parses a comma-separated list of ranges (`10.0.0.0/8`), addresses (`10.0.0.7`, `fd00::7`) and
    /// addresses with a port (`10.0.0.7:11434`, `[fd00::7]:11434`).
    ///
    /// # Errors
    ///
    /// Fails when an entry is none of these, or has bits beyond its prefix length.
    pub fn parse(text: &str) -> Result<Self, InvalidEntry> {
        let mut list = Self::default();
        for entry in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            list.add(entry)?;
        }
        Ok(list)
    }

    fn add(&mut self, entry: &str) -> Result<(), InvalidEntry> {
        // Before the socket: `::1:80` is an address, `[::1]:80` has a port.
        if let Ok(ip) = entry.parse::<IpAddr>() {
            self.ranges.push(ip.into());
        } else if let Ok(socket) = entry.parse::<SocketAddr>() {
            if socket.port() == 0 {
                return Err(InvalidEntry::PortZero(entry.to_owned()));
            }
            self.sockets.push(socket);
        } else {
            let range: IpNet = entry.parse().map_err(|_| InvalidEntry::Syntax(entry.to_owned()))?;
            if range.addr() != range.network() {
                return Err(InvalidEntry::HostBits(range));
            }
            self.ranges.push(range);
        }
        Ok(())
    }

    /// Whether this address and port is allowed.
    pub fn allows(&self, ip: IpAddr, port: u16) -> bool {
        self.ranges.iter().any(|it| it.contains(&ip)) || self.allows_plain(ip, port)
    }

    /// Whether this address and port is also allowed without TLS: its entry names a port.
    pub fn allows_plain(&self, ip: IpAddr, port: u16) -> bool {
        self.sockets.iter().any(|it| it.ip() == ip && it.port() == port)
    }

    /// Whether any address is allowed without TLS.
    pub fn allows_any_plain(&self) -> bool {
        !self.sockets.is_empty()
    }
}
