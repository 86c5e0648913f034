//! The demo's receiver of webhooks: an HTTPS endpoint in this process, with a certificate of its own.
//!
//! One path always succeeds, one refuses a third of the deliveries at the first attempt, and one is gone. The delivery log
//! then shows deliveries that succeeded at once, that were repeated, and a webhook that the server disabled.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context;
use api::webhook::EventType;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer},
};

use super::loopback::LoopbackSocket;
use crate::{app::App, config::EgressSettings};

/// A path that always succeeds.
pub(super) const RELIABLE_PATH: &str = "/incidents";
/// A path that refuses a third of the deliveries at the first attempt.
pub(super) const BUSY_PATH: &str = "/chat-bot";
/// A path that no longer exists.
pub(super) const GONE_PATH: &str = "/old-pager";

/// The file of the certificate, in the demo's folder.
const CERTIFICATE_FILE: &str = "webhook-receiver.pem";
/// Maximum size of a delivery in bytes.
const MAX_DELIVERY_BYTES: usize = 1024 * 1024;
/// Number of refused deliveries that are remembered, so that their next attempt succeeds.
const MAX_REMEMBERED_DELIVERIES: usize = 1_000;

/// The socket of the receiver, its certificate, and the deliveries that it refused.
pub(super) struct WebhookReceiver {
    socket: LoopbackSocket,
    tls: TlsAcceptor,
    certificate_file: PathBuf,
    refused: Arc<Mutex<VecDeque<String>>>,
}

impl WebhookReceiver {
    /// Opens a socket, and writes the certificate to a file in this folder.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        let socket = LoopbackSocket::open()?;
        let own = rcgen::generate_simple_self_signed([socket.address.ip().to_string()])
            .context("can't create a certificate for the demo's webhook receiver")?;
        let certificate_file = folder.join(CERTIFICATE_FILE);
        std::fs::write(&certificate_file, own.cert.pem())
            .with_context(|| format!("can't write {}", certificate_file.display()))?;
        let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key.into())?;
        let tls = TlsAcceptor::from(Arc::new(config));
        Ok(Self { socket, tls, certificate_file, refused: Arc::default() })
    }

    /// Returns settings that allow webhooks to use this receiver and no other private address.
    pub(super) fn settings(&self) -> EgressSettings {
        EgressSettings {
            egress_allow_cidrs: Some(self.socket.address.to_string()),
            egress_ca_file: Some(self.certificate_file.clone()),
        }
    }

    /// Returns the URL of a path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.socket.address)
    }

    /// Answers deliveries until the app stops.
    pub(super) fn serve(&self, app: &Arc<App>) -> anyhow::Result<()> {
        let refused = Arc::clone(&self.refused);
        self.socket.serve(app, Some(self.tls.clone()), move |request| {
            let refused = Arc::clone(&refused);
            async move { respond(request, &refused).await }
        })
    }
}

async fn respond(request: Request<Incoming>, refused: &Mutex<VecDeque<String>>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    // A response before the end of the request would be an error to some clients.
    _ = Limited::new(body, MAX_DELIVERY_BYTES).collect().await;
    let header = |name| head.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let (event, delivery) = (header("x-service-event"), header("x-service-delivery"));
    let (status, text) = match head.uri.path() {
        RELIABLE_PATH => (StatusCode::OK, "{\"received\":true}"),
        BUSY_PATH if event != EventType::Ping.as_str() && is_refused(delivery, refused) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "{\"error\":\"the database is read-only\"}")
        }
        BUSY_PATH => (StatusCode::NO_CONTENT, ""),
        GONE_PATH => (StatusCode::GONE, "this integration was removed"),
        _ => (StatusCode::NOT_FOUND, "no such path"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}

/// Whether this attempt is refused: the first one of the deliveries whose ID ends in one of five of the 16 digits.
fn is_refused(delivery: &str, refused: &Mutex<VecDeque<String>>) -> bool {
    let chosen =
        delivery.bytes().next_back().and_then(|it| char::from(it).to_digit(16)).is_some_and(|it| it < 5);
    let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
    if !chosen || refused.iter().any(|it| it == delivery) {
        return false;
    }
    if refused.len() == MAX_REMEMBERED_DELIVERIES {
        refused.pop_front();
    }
    refused.push_back(delivery.to_owned());
    true
}
