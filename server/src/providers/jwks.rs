//! Fetches the published keys of an identity provider.
//!
//! The operator configured the address, so private addresses are allowed. It must be https or on this
//! machine, because anyone who can change the response in transit can sign tokens.

use anyhow::{Context, ensure};
use futures::future::BoxFuture;
use serde::Deserialize;
use url::Url;

use crate::config::trusted_url;

/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// A source of a provider's keys.
pub trait KeySource: Send + Sync + 'static {
    /// Returns the currently published JWK set, in JSON.
    fn fetch(&self) -> BoxFuture<'_, anyhow::Result<Vec<u8>>>;
}

/// Keys at an address that the discovery document names, or that the operator set.
pub struct Published {
    http: reqwest::Client,
    issuer: String,
    keys: Option<Url>,
}

/// The used parts of a discovery document (OpenID Connect Discovery, section 3).
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl Published {
    /// Creates the source of the keys of `issuer`, at the address `keys` if given.
    ///
    /// # Errors
    ///
    /// Fails when an address is not trustworthy.
    pub fn new(issuer: &str, keys: Option<&str>) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            // The response must come from the address itself.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("loupe-server/", env!("CARGO_PKG_VERSION")))
            .build()
            .context("can't create the HTTP client for the identity provider")?;
        trusted_url(issuer).context("the issuer")?;
        let keys = keys.map(trusted_url).transpose().context("the address of the keys")?;
        Ok(Self { http, issuer: issuer.to_owned(), keys })
    }

    async fn published(&self) -> anyhow::Result<Vec<u8>> {
        let address = match &self.keys {
            Some(address) => address.clone(),
            None => self.discovered().await?,
        };
        self.get(address).await
    }

    /// Discovers the address each time: it is one short request, and a provider may move its keys.
    async fn discovered(&self) -> anyhow::Result<Url> {
        let address = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let answer = self.get(trusted_url(&address)?).await?;
        let found: Discovery = serde_json::from_slice(&answer)
            .with_context(|| format!("{address} is not a discovery document"))?;
        ensure!(
            found.issuer == self.issuer,
            "{address} belongs to the issuer `{}`, but LOUPE_OIDC_ISSUER is `{}`: set it to exactly the former",
            found.issuer,
            self.issuer
        );
        trusted_url(&found.jwks_uri).with_context(|| format!("the jwks_uri in {address}"))
    }

    async fn get(&self, address: Url) -> anyhow::Result<Vec<u8>> {
        let sent = self.http.get(address.clone()).header("accept", "application/json").send().await;
        let mut answer = sent.map_err(reqwest::Error::without_url).with_context(|| address.to_string())?;
        ensure!(answer.status().is_success(), "{address} returned status {}", answer.status());
        let mut body = Vec::new();
        while let Some(piece) =
            answer.chunk().await.map_err(reqwest::Error::without_url).with_context(|| address.to_string())?
        {
            ensure!(
                body.len() + piece.len() <= MAX_RESPONSE_BYTES,
                "the response of {address} is larger than {MAX_RESPONSE_BYTES} bytes"
            );
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

impl KeySource for Published {
    fn fetch(&self) -> BoxFuture<'_, anyhow::Result<Vec<u8>>> {
        Box::pin(self.published())
    }
}
