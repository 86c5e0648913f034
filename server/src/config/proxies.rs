//! The proxies that the operator trusts.

use std::{net::IpAddr, str::FromStr};

use ipnet::IpNet;

/// The trusted proxies, parsed from a comma-separated list of addresses and networks in CIDR notation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// Error: an entry of the list is neither an address nor a network.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is neither an address nor a network such as 10.0.0.0/8")]
pub struct InvalidNetwork(String);

impl FromStr for TrustedProxies {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let entries = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        let network = |entry: &str| match entry.parse::<IpAddr>() {
            Ok(address) => Ok(address.into()),
            Err(_) => entry.parse::<IpNet>().map_err(|_| InvalidNetwork(entry.to_owned())),
        };
        Ok(Self(entries.map(network).collect::<Result<_, _>>()?))
    }
}

impl TrustedProxies {
    /// Returns whether the address is one of the proxies.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|it| it.contains(&address))
    }
}
