//! Settings of the identity provider whose tokens are sessions here.

use anyhow::{Context, ensure};
use clap::Args;

use crate::providers::jwks::trusted;

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
                let url = trusted(issuer).context("LOUPE_OIDC_ISSUER")?;
                let plain = url.query().is_none() && url.fragment().is_none();
                ensure!(plain, "LOUPE_OIDC_ISSUER must have no query and no fragment");
            }
            None => ensure!(
                self.oidc_audience.is_none() && self.oidc_jwks_url.is_none(),
                "LOUPE_OIDC_AUDIENCE and LOUPE_OIDC_JWKS_URL need LOUPE_OIDC_ISSUER beside them"
            ),
        }
        if let Some(url) = &self.oidc_jwks_url {
            trusted(url).context("LOUPE_OIDC_JWKS_URL")?;
        }
        Ok(())
    }
}
