//! Settings of the identity provider whose tokens are sessions here.

use anyhow::{Context, bail, ensure};
use clap::Args;
use url::{Host, Url};

/// Claim with the tenant unless another is set.
const TENANT: &str = "tenant_id";
/// Claim with the role unless another is set.
const ROLE: &str = "role";

/// Which identity provider is trusted, and what its tokens call things.
#[derive(Args, Clone, Debug, Default)]
pub struct OidcSettings {
    /// Issuer of session tokens: an identity provider (OpenID Connect). Exactly as the claim `iss`
    /// of its tokens has it; its keys are discovered below this address.
    #[arg(long, env = "LOUPE_OIDC_ISSUER", value_name = "URL", global = true)]
    pub oidc_issuer: Option<String>,

    /// What the claim `aud` of the provider's tokens has to hold. Unset: it is not looked at.
    #[arg(long, env = "LOUPE_OIDC_AUDIENCE", value_name = "NAME")]
    pub oidc_audience: Option<String>,

    /// Address of the provider's JWK set [default: found by discovery].
    #[arg(long, env = "LOUPE_OIDC_JWKS_URL", value_name = "URL")]
    pub oidc_jwks_url: Option<String>,

    /// Claim with the tenant's id or external id; dots lead into objects.
    #[arg(long, env = "LOUPE_OIDC_TENANT_CLAIM", default_value = TENANT, value_name = "CLAIM")]
    pub oidc_tenant_claim: String,

    /// Claim with the role (owner, member or viewer); dots lead into objects.
    #[arg(long, env = "LOUPE_OIDC_ROLE_CLAIM", default_value = ROLE, value_name = "CLAIM")]
    pub oidc_role_claim: String,
}

impl OidcSettings {
    /// Takes empty settings as unset.
    pub fn drop_empty(&mut self) {
        for setting in [&mut self.oidc_issuer, &mut self.oidc_audience, &mut self.oidc_jwks_url] {
            *setting = setting.take().filter(|it| !it.is_empty());
        }
        for (setting, default) in [(&mut self.oidc_tenant_claim, TENANT), (&mut self.oidc_role_claim, ROLE)] {
            if setting.is_empty() {
                default.clone_into(setting);
            }
        }
    }

    /// Checks what clap can't.
    ///
    /// # Errors
    /// When a setting can't be used, or does nothing without another one.
    pub fn check(&self) -> anyhow::Result<()> {
        match &self.oidc_issuer {
            Some(issuer) => {
                let url = trusted_url(issuer).context("LOUPE_OIDC_ISSUER")?;
                let plain = url.query().is_none() && url.fragment().is_none();
                ensure!(plain, "LOUPE_OIDC_ISSUER must have no query and no fragment");
            }
            None => ensure!(
                self.oidc_audience.is_none() && self.oidc_jwks_url.is_none(),
                "LOUPE_OIDC_AUDIENCE and LOUPE_OIDC_JWKS_URL need LOUPE_OIDC_ISSUER beside them"
            ),
        }
        if let Some(url) = &self.oidc_jwks_url {
            trusted_url(url).context("LOUPE_OIDC_JWKS_URL")?;
        }
        Ok(())
    }
}

/// Parses an address that no third party can answer for: https, or http to this machine.
///
/// # Errors
/// When it is another one, or none.
pub fn trusted_url(address: &str) -> anyhow::Result<Url> {
    let url = Url::parse(address).with_context(|| format!("`{address}` is no URL"))?;
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => {}
        "http" if local => {}
        _ => bail!("`{address}` has to begin with https://, or be on this machine"),
    }
    ensure!(url.username().is_empty() && url.password().is_none(), "`{address}` must have no user in it");
    Ok(url)
}
