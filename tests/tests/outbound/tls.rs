//! TLS: the certificate must match the requested name, whatever the address.

use std::{sync::Arc, time::Duration};

use outbound::{OutboundClient, OutboundResponse, OutboundSettings, SendError, Stage, TrustedRoots};
use server::config::EgressSettings;
use tests::authority::Authority;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    allowing, post,
    receiver::{Receiver, request},
    resolver,
};

/// A certificate authority, and the receivers and clients that use it.
struct TlsReceivers(Authority);

impl TlsReceivers {
    fn new() -> Self {
        Self(Authority::new())
    }

    /// Starts a TLS receiver on 127.0.0.1 with a certificate for these names that expires at the end of the
    /// year.
    async fn receiver(&self, names: &[&str], until: i32) -> Receiver {
        let acceptor = self.0.acceptor(names, until);
        Receiver::new(move |socket| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(mut secure) = acceptor.accept(socket).await else { return };
                let server_name = secure.get_ref().1.server_name().unwrap_or("none").to_owned();
                while let Some(head) = request(&mut secure).await {
                    let host = head.lines().find_map(|it| it.strip_prefix("host: ")).unwrap().to_owned();
                    let body = format!("{server_name} {host}");
                    let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                    if secure.write_all(response.as_bytes()).await.is_err() {
                        break;
                    }
                }
            }
        })
        .await
    }

    /// Sends a request to a host. If the host is a name, it resolves to 127.0.0.1.
    async fn send(&self, host: &str, receiver: &Receiver) -> Result<OutboundResponse, SendError> {
        self.client(host).send(post(&url(host, receiver))).await
    }

    fn client(&self, host: &str) -> OutboundClient {
        let tenant_roots = TrustedRoots::from_pem(self.0.pem.as_bytes()).unwrap();
        let settings = OutboundSettings { tenant_roots, ..allowing("127.0.0.0/8") };
        OutboundClient::new(settings, Arc::new(resolver(&[(host, &["127.0.0.1"])])))
    }
}

fn url(host: &str, receiver: &Receiver) -> String {
    format!("https://{host}:{}/hook", receiver.address.port())
}

#[tokio::test]
async fn tls_server_name_is_the_requested_host() {
    let authority = TlsReceivers::new();
    let receiver = authority.receiver(&["hook.example", "127.0.0.1"], 2099).await;
    let port = receiver.address.port();
    for (host, server_name) in
        [("hook.example", "hook.example"), ("hook.example.", "hook.example"), ("127.0.0.1", "none")]
    {
        let response = authority.send(host, &receiver).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&response.body), format!("{server_name} {host}:{port}"));
    }
}

#[tokio::test]
async fn idle_tls_connection_is_reused() {
    let authority = TlsReceivers::new();
    let receiver = authority.receiver(&["hook.example"], 2099).await;
    let client = authority.client("hook.example");
    for _ in 0..10 {
        client.send(post(&url("hook.example", &receiver))).await.unwrap();
    }
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn invalid_certificate_is_rejected() {
    let (authority, stranger) = (TlsReceivers::new(), TlsReceivers::new());
    let cases = [
        ("another name", authority.receiver(&["other.example"], 2099).await),
        ("a part of the name", authority.receiver(&["example"], 2099).await),
        ("its address only", authority.receiver(&["127.0.0.1"], 2099).await),
        ("expired", authority.receiver(&["hook.example"], 2021).await),
        ("an unknown authority", stranger.receiver(&["hook.example"], 2099).await),
    ];
    for (what, receiver) in cases {
        let outcome = authority.send("hook.example", &receiver).await;
        let Err(SendError::InvalidCertificate(why)) = outcome else { panic!("{what}: {outcome:?}") };
        assert!(why.contains("certificate"), "{what}: {why}");
    }
}

#[tokio::test]
async fn certificate_of_unknown_authority_is_rejected() {
    let authority = TlsReceivers::new();
    let receiver = authority.receiver(&["hook.example"], 2099).await;
    let outcome = crate::client("127.0.0.0/8", &[("hook.example", &["127.0.0.1"])])
        .send(post(&url("hook.example", &receiver)))
        .await;
    assert!(matches!(outcome, Err(SendError::InvalidCertificate(_))), "{outcome:?}");
}

#[tokio::test]
async fn server_without_tls_is_rejected() {
    let authority = TlsReceivers::new();
    let plain = Receiver::closing("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let hasty = Receiver::new(|mut socket: TcpStream| async move {
        _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    let gone = Receiver::new(|socket: TcpStream| async move { drop(socket) }).await;
    for (what, receiver) in [("hasty", hasty), ("gone", gone)] {
        let outcome = authority.send("hook.example", &receiver).await;
        assert!(matches!(outcome, Err(SendError::TlsFailed(_))), "{what}: {outcome:?}");
    }
    let silent = Receiver::new(|socket: TcpStream| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        drop(socket);
    })
    .await;
    // The plain receiver waits for a request and gets a TLS greeting instead.
    for (what, receiver) in [("plain", plain), ("silent", silent)] {
        let outcome = authority.send("hook.example", &receiver).await;
        assert_eq!(outcome.unwrap_err(), SendError::TimedOut(Stage::Tls), "{what}");
    }
}

#[test]
fn ca_file_without_certificates_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (name, content) in
        [("empty", Some("")), ("text", Some("hello")), ("broken", Some(broken)), ("none", None)]
    {
        let path = folder.path().join(name);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let settings = EgressSettings { egress_allow_cidrs: None, egress_ca_file: Some(path) };
        let Err(error) = settings.outbound("127.0.0.1:0".parse().unwrap()) else {
            panic!("{name} was accepted");
        };
        let error = format!("{error:#}");
        assert!(error.contains("LOUPE_EGRESS_CA_FILE") && error.contains(name), "{error}");
    }
}
