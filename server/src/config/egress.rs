//! Settings of the way out to addresses that tenants set.

use std::path::PathBuf;

use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser},
};

use crate::config::openings::Openings;

/// What tenants' webhooks, callbacks and providers may reach beyond public https addresses.
#[derive(Args, Clone, Debug, Default)]
pub struct EgressSettings {
    /// Addresses that are not public and that tenants may use all the same: ranges, addresses, or
    /// `IP:PORT`, which may be used over http too. Comma-separated.
    #[arg(long, env = "LOUPE_EGRESS_ALLOW_CIDRS", value_name = "CIDRS")]
    pub egress_allow_cidrs: Option<String>,

    /// PEM file of authorities that vouch for what tenants use, besides those of the platform.
    #[arg(long, env = "LOUPE_EGRESS_CA_FILE", value_name = "FILE", value_parser = any_path())]
    pub egress_ca_file: Option<PathBuf>,
}

impl EgressSettings {
    /// What is open beyond public addresses.
    ///
    /// # Errors
    /// When the list can't be read.
    pub fn openings(&self) -> anyhow::Result<Openings> {
        Openings::parse(self.egress_allow_cidrs.as_deref().unwrap_or_default())
    }

    /// Takes empty settings as unset.
    pub fn drop_empty(&mut self) {
        self.egress_allow_cidrs = self.egress_allow_cidrs.take().filter(|it| !it.is_empty());
        self.egress_ca_file = self.egress_ca_file.take().filter(|it| !it.as_os_str().is_empty());
    }
}

/// Takes an empty path too, which clap's own parser refuses: see [`EgressSettings::drop_empty`].
fn any_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}
