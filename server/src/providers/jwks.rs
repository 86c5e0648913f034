//! Fetches the published keys of an identity provider.
//!
//! The operator configured the address, so private addresses are allowed. It must be https or on this
//! machine, because anyone who can change the response in transit can sign tokens.

use std::time::Duration;

use anyhow::{Context, ensure};
use futures::future::BoxFuture;
use outbound::{
    AddressOwner, Bytes, HeaderMap, Method, OutboundClient, OutboundRequest, Url,
    header::{ACCEPT, HeaderValue},
};
use serde::Deserialize;

use crate::config::trusted_url;

/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// Maximum duration of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A source of a provider's keys.
pub trait KeySource: Send + Sync + 'static {
    /// Returns the currently published JWK set, in JSON.
    fn fetch(&self) -> BoxFuture<'_, anyhow::Result<Bytes>>;
}

/// Keys at an address that the discovery document names, or that the operator set.
pub struct PublishedKeys {
    outbound: OutboundClient,
    issuer: String,
    keys: Option<Url>,
}

/// The used parts of a discovery document (OpenID Connect Discovery, section 3).
#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    jwks_uri: String,
}

impl PublishedKeys {
    /// Creates the source of the keys of `issuer`, at the address `keys` if given.
    ///
    /// # Errors
    ///
    /// Fails when an address is not trustworthy.
    pub fn new(issuer: &str, keys: Option<&str>, outbound: OutboundClient) -> anyhow::Result<Self> {
        trusted_url(issuer).context("the issuer")?;
        let keys = keys.map(trusted_url).transpose().context("the address of the keys")?;
        Ok(Self { outbound, issuer: issuer.to_owned(), keys })
    }

    async fn fetch_published(&self) -> anyhow::Result<Bytes> {
        let address = match &self.keys {
            Some(address) => address.clone(),
            None => self.discover_keys_address().await?,
        };
        self.get(address).await
    }

    /// Discovers the address each time: it is one short request, and a provider may move its keys.
    async fn discover_keys_address(&self) -> anyhow::Result<Url> {
        let address = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let response = self.get(trusted_url(&address)?).await?;
        let document: DiscoveryDocument = serde_json::from_slice(&response)
            .with_context(|| format!("{address} is not a discovery document"))?;
        ensure!(
            document.issuer == self.issuer,
            "{address} belongs to the issuer `{}`, but LOUPE_OIDC_ISSUER is `{}`: set it to exactly the former",
            document.issuer,
            self.issuer
        );
        trusted_url(&document.jwks_uri).with_context(|| format!("the jwks_uri in {address}"))
    }

    async fn get(&self, address: Url) -> anyhow::Result<Bytes> {
        let shown = address.to_string();
        let request = OutboundRequest {
            method: Method::GET,
            url: address,
            set_by: AddressOwner::Operator,
            headers: HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]),
            body: Bytes::new(),
            timeout: REQUEST_TIMEOUT,
            max_body: MAX_RESPONSE_BYTES,
        };
        let response = self.outbound.send(request).await.with_context(|| shown.clone())?;
        ensure!(response.status.is_success(), "{shown} returned status {}", response.status);
        Ok(response.complete().context(shown)?.clone())
    }
}

impl KeySource for PublishedKeys {
    fn fetch(&self) -> BoxFuture<'_, anyhow::Result<Bytes>> {
        Box::pin(self.fetch_published())
    }
}
