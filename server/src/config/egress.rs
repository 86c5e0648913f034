//! Settings of outbound requests to addresses that tenants set.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Context;
use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser},
};
use outbound::{AllowList, OutboundSettings, TrustedRoots};

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
    /// Validates what clap cannot.
    ///
    /// # Errors
    ///
    /// Fails when the allow list is invalid.
    pub fn check(&self) -> anyhow::Result<()> {
        self.allow_list().map(drop)
    }

    /// Returns the settings of the client of a process that listens on `listener`.
    ///
    /// # Errors
    ///
    /// Fails when the allow list is invalid, or the file contains no certificate authorities.
    pub fn outbound(&self, listener: SocketAddr) -> anyhow::Result<OutboundSettings> {
        Ok(OutboundSettings {
            allow_list: self.allow_list()?,
            tenant_roots: self.roots()?,
            own_listeners: vec![listener],
        })
    }

    fn allow_list(&self) -> anyhow::Result<AllowList> {
        AllowList::parse(self.egress_allow_cidrs.as_deref().unwrap_or_default())
            .context("LOUPE_EGRESS_ALLOW_CIDRS")
    }

    fn roots(&self) -> anyhow::Result<TrustedRoots> {
        let Some(path) = &self.egress_ca_file else { return Ok(TrustedRoots::default()) };
        let context = || format!("LOUPE_EGRESS_CA_FILE: {}", path.display());
        let text = std::fs::read(path).with_context(context)?;
        TrustedRoots::from_pem(&text).with_context(context)
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
