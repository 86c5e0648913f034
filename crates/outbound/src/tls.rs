//! Certificate authorities that are trusted.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;

/// Certificate authorities that are trusted in addition to the platform's.
#[derive(Clone, Default)]
pub struct TrustedRoots(Vec<CertificateDer<'static>>);

/// A PEM text that contains no usable authorities.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRoots {
    /// The text contains no certificate.
    #[error("contains no PEM certificate")]
    NoCertificate,
    /// The text is not PEM.
    #[error("is not valid PEM: {0}")]
    NotPem(rustls::pki_types::pem::Error),
    /// A certificate cannot be an authority.
    #[error("contains a certificate that can't be an authority: {0}")]
    NotAuthority(rustls::Error),
}

impl TrustedRoots {
    /// Parses the certificates of a PEM text.
    ///
    /// # Errors
    ///
    /// Fails when it contains no certificate, or one that cannot be an authority.
    pub fn from_pem(text: &[u8]) -> Result<Self, InvalidRoots> {
        let roots: Vec<_> =
            CertificateDer::pem_slice_iter(text).collect::<Result<_, _>>().map_err(InvalidRoots::NotPem)?;
        if roots.is_empty() {
            return Err(InvalidRoots::NoCertificate);
        }
        let mut store = RootCertStore::empty();
        for root in &roots {
            store.add(root.clone()).map_err(InvalidRoots::NotAuthority)?;
        }
        Ok(Self(roots))
    }
}

/// Returns the TLS configuration: TLS 1.2 and 1.3 with the platform's roots and these, for HTTP/1.1,
/// without client certificates.
///
/// # Errors
///
/// Fails when the platform has no roots and there are no others.
pub fn config(extra: &TrustedRoots) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra.0.iter().cloned(), Arc::clone(&provider))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
