//! Where the keys of an identity provider are published, and fetching them.
//!
//! The operator chose the address, so it is not guarded against being a private one. It has to be
//! https all the same, or on this machine: whoever can change the answer on its way can sign tokens.

use anyhow::{Context, ensure};
use futures::future::BoxFuture;
use serde::Deserialize;
use url::Url;

use crate::config::trusted_url;

/// Longest answer that is read, in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// Where a provider's keys come from.
pub trait KeySource: Send + Sync + 'static {
    /// The JWK set as it is published now, in JSON.
    fn fetch(&self) -> BoxFuture<'_, anyhow::Result<Vec<u8>>>;
}

/// Keys at an address that the provider's discovery document names, or that the operator set.
pub struct Published {
    http: reqwest::Client,
    issuer: String,
    keys: Option<Url>,
}

/// What is read of a discovery document (OpenID Connect Discovery, section 3).
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl Published {
    /// The keys of `issuer`, at `keys` if that is known.
    ///
    /// # Errors
    /// When one of them is no address that can be trusted.
    pub fn new(issuer: &str, keys: Option<&str>) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            // The answer has to come from the address itself.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("loupe-server/", env!("CARGO_PKG_VERSION")))
            .build()
            .context("can't make a client for the identity provider")?;
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

    /// Looked up each time: it is one short request, and a provider may move its keys.
    async fn discovered(&self) -> anyhow::Result<Url> {
        let address = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let answer = self.get(trusted_url(&address)?).await?;
        let found: Discovery =
            serde_json::from_slice(&answer).with_context(|| format!("{address} is no discovery document"))?;
        ensure!(
            found.issuer == self.issuer,
            "{address} is of the issuer `{}`, and the tokens of `{}` are taken: set LOUPE_OIDC_ISSUER to exactly the former",
            found.issuer,
            self.issuer
        );
        trusted_url(&found.jwks_uri).with_context(|| format!("the jwks_uri in {address}"))
    }

    async fn get(&self, address: Url) -> anyhow::Result<Vec<u8>> {
        let sent = self.http.get(address.clone()).header("accept", "application/json").send().await;
        let mut answer = sent.map_err(reqwest::Error::without_url).with_context(|| address.to_string())?;
        ensure!(answer.status().is_success(), "{address} answered {}", answer.status());
        let mut body = Vec::new();
        while let Some(piece) =
            answer.chunk().await.map_err(reqwest::Error::without_url).with_context(|| address.to_string())?
        {
            ensure!(
                body.len() + piece.len() <= MAX_ANSWER,
                "{address} answered more than {MAX_ANSWER} bytes"
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
