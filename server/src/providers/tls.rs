//! Certificate authorities that are trusted.

use std::{path::Path, sync::Arc};

use anyhow::{Context, ensure};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;

/// Reads the certificates of a PEM file.
///
/// # Errors
///
/// Fails when it can't be read, contains no certificate, or one that can't be an authority.
pub fn read_roots(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let context = || format!("LOUPE_EGRESS_CA_FILE: {}", path.display());
    let text = std::fs::read(path).with_context(context)?;
    let roots: Vec<_> =
        CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().with_context(context)?;
    ensure!(!roots.is_empty(), "LOUPE_EGRESS_CA_FILE: {} contains no PEM certificate", path.display());
    let mut store = RootCertStore::empty();
    for root in &roots {
        store.add(root.clone()).with_context(context)?;
    }
    Ok(roots)
}

/// Returns the TLS configuration: TLS 1.2 and 1.3 with the platform's roots and these, for HTTP/1.1,
/// without client certificates.
///
/// # Errors
///
/// Fails when the platform has no roots and there are no others.
pub fn config(extra: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra.iter().cloned(), Arc::clone(&provider))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
