//! What the operator opened beyond public addresses. Pure.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, ensure};
use ipnet::IpNet;

/// The openings of `LOUPE_EGRESS_ALLOW_CIDRS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Openings {
    ranges: Vec<IpNet>,
    sockets: Vec<SocketAddr>,
}

impl Openings {
    /// Reads a comma-separated list of ranges (`10.0.0.0/8`), addresses (`10.0.0.7`, `fd00::7`)
    /// and addresses with a port (`10.0.0.7:11434`, `[fd00::7]:11434`).
    ///
    /// # Errors
    /// When an entry is none of these, or says more than its prefix length does.
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
            ensure!(socket.port() != 0, "there is no port 0");
            self.sockets.push(socket);
        } else {
            let range: IpNet = entry.parse().context(
                "write a range such as 10.0.0.0/8, an address, or an address and a port such as 10.0.0.7:11434 or [fd00::7]:11434",
            )?;
            // 10.0.0.7/8 is more often one address and a slip than a range of sixteen million.
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

    /// Whether this address and port is open.
    pub fn opens(&self, ip: IpAddr, port: u16) -> bool {
        self.ranges.iter().any(|it| it.contains(&ip)) || self.opens_plain(ip, port)
    }

    /// Whether this address and port is open without TLS too: it is when its entry names a port.
    pub fn opens_plain(&self, ip: IpAddr, port: u16) -> bool {
        self.sockets.iter().any(|it| it.ip() == ip && it.port() == port)
    }

    /// Whether anything at all is open without TLS.
    pub fn any_plain(&self) -> bool {
        !self.sockets.is_empty()
    }
}
