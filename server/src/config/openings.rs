//! The operator's allow list of addresses that are not public. Pure.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, ensure};
use ipnet::IpNet;

/// The parsed `LOUPE_EGRESS_ALLOW_CIDRS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Openings {
    ranges: Vec<IpNet>,
    sockets: Vec<SocketAddr>,
}

impl Openings {
    /// Parses a comma-separated list of ranges (`10.0.0.0/8`), addresses (`10.0.0.7`, `fd00::7`) and
    /// addresses with a port (`10.0.0.7:11434`, `[fd00::7]:11434`).
    ///
    /// # Errors
    ///
    /// Fails when an entry is none of these, or has bits beyond its prefix length.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut openings = Self::default();
        for entry in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            openings.add(entry).with_context(|| format!("LOUPE_EGRESS_ALLOW_CIDRS: `{entry}`"))?;
        }
        Ok(openings)
    }

    fn add(&mut self, entry: &str) -> anyhow::Result<()> {
        // Before the socket: `::1:80` is an address, `[::1]:80` has a port.
        if let Ok(ip) = entry.parse::<IpAddr>() {
            self.ranges.push(ip.into());
        } else if let Ok(socket) = entry.parse::<SocketAddr>() {
            ensure!(socket.port() != 0, "port 0 is not valid");
            self.sockets.push(socket);
        } else {
            let range: IpNet = entry.parse().context(
                "write a range such as 10.0.0.0/8, an address, or an address and a port such as 10.0.0.7:11434 or [fd00::7]:11434",
            )?;
            // 10.0.0.7/8 is more often a mistake for one address than a range of sixteen million.
            ensure!(
                range.addr() == range.network(),
                "write {} for the range, or {} for the one address",
                range.trunc(),
                range.addr()
            );
            self.ranges.push(range);
        }
        Ok(())
    }

    /// Whether this address and port is allowed.
    pub fn opens(&self, ip: IpAddr, port: u16) -> bool {
        self.ranges.iter().any(|it| it.contains(&ip)) || self.opens_plain(ip, port)
    }

    /// Whether this address and port is also allowed without TLS: its entry names a port.
    pub fn opens_plain(&self, ip: IpAddr, port: u16) -> bool {
        self.sockets.iter().any(|it| it.ip() == ip && it.port() == port)
    }

    /// Whether any address is allowed without TLS.
    pub fn any_plain(&self) -> bool {
        !self.sockets.is_empty()
    }
}
