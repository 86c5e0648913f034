//! Settings of outbound requests to addresses that tenants set.

use std::path::PathBuf;

use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser},
};

use crate::config::openings::Openings;

/// Addresses that tenants' webhooks, callbacks and providers may use in addition to public https
/// addresses.
#[derive(Args, Clone, Debug, Default)]
pub struct EgressSettings {
    /// Private addresses that tenants may use: ranges, addresses, or `IP:PORT`, which may also be used
    /// over http. Comma-separated.
    #[arg(long, env = "LOUPE_EGRESS_ALLOW_CIDRS", value_name = "CIDRS")]
    pub egress_allow_cidrs: Option<String>,

    /// PEM file of certificate authorities to trust for addresses of tenants, in addition to the
    /// platform's.
    #[arg(long, env = "LOUPE_EGRESS_CA_FILE", value_name = "FILE", value_parser = any_path())]
    pub egress_ca_file: Option<PathBuf>,
}

impl EgressSettings {
    /// Returns the allow list.
    ///
    /// # Errors
    ///
    /// Fails when the list is invalid.
    pub fn openings(&self) -> anyhow::Result<Openings> {
        Openings::parse(self.egress_allow_cidrs.as_deref().unwrap_or_default())
    }

    /// Treats empty settings as unset.
    pub fn drop_empty(&mut self) {
        self.egress_allow_cidrs = self.egress_allow_cidrs.take().filter(|it| !it.is_empty());
        self.egress_ca_file = self.egress_ca_file.take().filter(|it| !it.as_os_str().is_empty());
    }
}

/// Accepts an empty path too, which clap's own parser rejects: see [`EgressSettings::drop_empty`].
fn any_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}
