//! A certificate authority for receivers with TLS.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up fails")]

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer},
};

/// A certificate authority of a test.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The authority's certificate, for clients that trust it.
    pub pem: String,
}

impl Authority {
    /// Creates an authority.
    #[allow(clippy::new_without_default, reason = "each authority has a key of its own")]
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::default()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Accepts TLS with a certificate for these names that expires at the end of the year.
    pub fn acceptor(&self, names: &[&str], until: i32) -> TlsAcceptor {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
