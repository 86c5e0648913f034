//! Settings of the identity provider that issues session tokens.

use anyhow::{Context, bail, ensure};
use clap::Args;
use url::{Host, Url};

/// Default claim with the tenant.
const DEFAULT_TENANT_CLAIM: &str = "tenant_id";
/// Default claim with the role.
const DEFAULT_ROLE_CLAIM: &str = "role";

/// The trusted identity provider, and the names of its claims.
#[derive(Args, Clone, Debug, Default)]
pub struct OidcSettings {
    /// Issuer of session tokens: an identity provider (OpenID Connect). Exactly as in the claim `iss`
    /// of its tokens; its keys are discovered below this address.
    #[arg(long, env = "LOUPE_OIDC_ISSUER", value_name = "URL", global = true)]
    pub oidc_issuer: Option<String>,

    /// Required value of the claim `aud` of the provider's tokens. If unset, the claim is not checked.
    #[arg(long, env = "LOUPE_OIDC_AUDIENCE", value_name = "NAME")]
    pub oidc_audience: Option<String>,

    /// Address of the provider's JWK set [default: found by discovery].
    #[arg(long, env = "LOUPE_OIDC_JWKS_URL", value_name = "URL")]
    pub oidc_jwks_url: Option<String>,

    /// Claim with the tenant's ID or external ID; dots are paths into objects.
    #[arg(long, env = "LOUPE_OIDC_TENANT_CLAIM", default_value = DEFAULT_TENANT_CLAIM, value_name = "CLAIM")]
    pub oidc_tenant_claim: String,

    /// Claim with the role (owner, member or viewer); dots are paths into objects.
    #[arg(long, env = "LOUPE_OIDC_ROLE_CLAIM", default_value = DEFAULT_ROLE_CLAIM, value_name = "CLAIM")]
    pub oidc_role_claim: String,
}

impl OidcSettings {
    /// Treats empty settings as unset.
    pub fn drop_empty(&mut self) {
        for setting in [&mut self.oidc_issuer, &mut self.oidc_audience, &mut self.oidc_jwks_url] {
            *setting = setting.take().filter(|it| !it.is_empty());
        }
        for (setting, default) in [
            (&mut self.oidc_tenant_claim, DEFAULT_TENANT_CLAIM),
            (&mut self.oidc_role_claim, DEFAULT_ROLE_CLAIM),
        ] {
            if setting.is_empty() {
                default.clone_into(setting);
            }
        }
    }

    /// Validates what clap cannot.
    ///
    /// # Errors
    ///
    /// Fails when a setting is invalid, or useless without another one.
    pub fn check(&self) -> anyhow::Result<()> {
        match &self.oidc_issuer {
            Some(issuer) => {
                let url = trusted_url(issuer).context("LOUPE_OIDC_ISSUER")?;
                let plain = url.query().is_none() && url.fragment().is_none();
                ensure!(plain, "LOUPE_OIDC_ISSUER must have no query and no fragment");
            }
            None => ensure!(
                self.oidc_audience.is_none() && self.oidc_jwks_url.is_none(),
                "LOUPE_OIDC_AUDIENCE and LOUPE_OIDC_JWKS_URL require LOUPE_OIDC_ISSUER"
            ),
        }
        if let Some(url) = &self.oidc_jwks_url {
            trusted_url(url).context("LOUPE_OIDC_JWKS_URL")?;
        }
        Ok(())
    }
}

/// Parses an address that is protected in transit: https, or http on this machine.
///
/// # Errors
///
/// Fails when it is another one, or not a URL.
pub fn trusted_url(address: &str) -> anyhow::Result<Url> {
    let url = Url::parse(address).with_context(|| format!("`{address}` is not a URL"))?;
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => {}
        "http" if local => {}
        _ => bail!("`{address}` must begin with https://, or be on this machine"),
    }
    ensure!(
        url.username().is_empty() && url.password().is_none(),
        "`{address}` must not contain a user name"
    );
    Ok(url)
}
