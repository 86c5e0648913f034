//! The allow list of the operator, and its limits.

use std::{net::SocketAddr, sync::Arc};

use outbound::{AddressRejection, OutboundClient, OutboundSettings, SendError};
use server::config::EgressSettings;
use tests::{On, TestApp};

use crate::{
    Verdict::{Accepted, NotHttps, Private},
    allowing, check_all, client, post,
    receiver::Receiver,
    resolver,
};

fn own(allow_list: &str, own: &[&str]) -> OutboundClient {
    let own_listeners: Vec<SocketAddr> = own.iter().map(|it| it.parse().unwrap()).collect();
    let settings = OutboundSettings { own_listeners, ..allowing(allow_list) };
    OutboundClient::new(settings, Arc::new(resolver(&[])))
}

fn parsed(allow_list: &str) -> anyhow::Result<()> {
    EgressSettings { egress_allow_cidrs: Some(allow_list.to_owned()), egress_ca_file: None }.check()
}

#[test]
fn allow_list_is_parsed_strictly() {
    for good in [
        "",
        " , ,",
        "10.0.0.0/8",
        "10.0.0.0/8, 192.168.0.7 ,fd00::/8",
        "10.0.0.7:11434",
        "[fd00::7]:11434,::1",
        "0.0.0.0/0,::/0",
    ] {
        parsed(good).unwrap();
    }
    for (bad, why) in [
        ("10.0.0.7/8", "write 10.0.0.0/8 for the range, or 10.0.0.7 for the one address"),
        ("fd00::7/8", "write fd00::/8"),
        ("10.0.0.0/33", "write a range"),
        ("10.0.0.0/-1", "write a range"),
        ("10.0.0", "write a range"),
        ("10.0.0.7:0", "port 0"),
        ("10.0.0.7:65536", "write a range"),
        ("10.0.0.7:", "write a range"),
        ("10.0.0.0/8:80", "write a range"),
        ("fd00::7]:80", "write a range"),
        ("ollama:11434", "write a range"),
        ("*", "write a range"),
        ("10.0.0.0/8;10.1.0.0/16", "write a range"),
        ("http://10.0.0.7", "write a range"),
        ("010.0.0.7", "write a range"),
    ] {
        let error = format!("{:#}", parsed(bad).unwrap_err());
        assert!(error.contains("LOUPE_EGRESS_ALLOW_CIDRS") && error.contains(why), "{bad}: {error}");
    }
}

#[tokio::test]
async fn allow_list_entry_allows_only_its_addresses() {
    let client = client("10.1.0.0/16,192.168.0.7,fd00:1::/32,172.16.0.9:11434,[fd00:2::9]:11434", &[]);
    let cases = [
        ("https://10.1.2.3/", Accepted),
        ("https://10.1.2.3:8443/", Accepted),
        ("https://10.2.0.0/", Private),
        ("https://10.0.255.255/", Private),
        ("https://192.168.0.7/", Accepted),
        ("https://192.168.0.8/", Private),
        ("https://[fd00:1::7]/", Accepted),
        ("https://[fd00:3::7]/", Private),
        ("https://[::ffff:10.1.2.3]/", Private),
        ("https://127.0.0.1/", Private),
        ("https://8.8.8.8/", Accepted),
        // An entry with a port allows only this port, with and without TLS.
        ("https://172.16.0.9:11434/", Accepted),
        ("http://172.16.0.9:11434/v1", Accepted),
        ("https://172.16.0.9/", Private),
        ("http://172.16.0.9/", NotHttps),
        ("http://172.16.0.9:11435/", NotHttps),
        ("http://[fd00:2::9]:11434/", Accepted),
        ("http://[fd00:2::9]:80/", NotHttps),
        // An entry without a port allows only TLS.
        ("http://10.1.2.3/", NotHttps),
        ("http://192.168.0.7/", NotHttps),
        ("http://8.8.8.8/", NotHttps),
        ("http://172.16.0.10:11434/", NotHttps),
    ];
    check_all(&client, cases.map(|(url, verdict)| (url.to_owned(), verdict))).await;
}

#[tokio::test]
async fn http_is_allowed_if_all_addresses_allow_it() {
    let client = client(
        "172.16.0.9:11434,172.16.0.10:11434",
        &[
            ("ollama", &["172.16.0.9"]),
            ("two", &["172.16.0.9", "172.16.0.10"]),
            ("mixed", &["172.16.0.9", "93.184.216.34"]),
            ("public", &["93.184.216.34"]),
        ],
    );
    let cases = [
        ("http://ollama:11434/v1", Accepted),
        ("http://two:11434/v1", Accepted),
        ("http://mixed:11434/v1", NotHttps),
        ("http://public:11434/v1", NotHttps),
        ("http://user@ollama:11434/v1", NotHttps),
        ("https://ollama:11434/v1", Accepted),
        ("https://mixed:11434/v1", Accepted),
    ];
    check_all(&client, cases.map(|(url, verdict)| (url.to_owned(), verdict))).await;
}

#[tokio::test]
async fn nat64_gateway_is_checked_by_inner_address() {
    let client = own("64:ff9b::/96,10.1.0.0/16", &["10.1.0.1:4600"]);
    let cases = [
        ("https://[64:ff9b::8.8.8.8]/", Accepted),
        ("https://[64:ff9b::10.1.2.3]/", Accepted),
        ("https://[64:ff9b::10.2.0.0]/", Private),
        ("https://[64:ff9b::127.0.0.1]/", Private),
        ("https://[64:ff9b::169.254.169.254]/", Private),
        ("https://[64:ff9b::10.1.0.1]/", Accepted),
        ("https://[64:ff9b::10.1.0.1]:4600/", Private),
    ];
    check_all(&client, cases.map(|(url, verdict)| (url.to_owned(), verdict))).await;
}

#[tokio::test]
async fn own_listener_addresses_stay_rejected() {
    let all = "0.0.0.0/0,::/0,127.0.0.1:4600";
    let one = [
        ("https://127.0.0.1:4600/", Private),
        ("http://127.0.0.1:4600/", Private),
        ("https://localhost:4600/", Private),
        ("https://[::ffff:127.0.0.1]:4600/", Private),
        ("https://0.0.0.0:4600/", Private),
        ("https://[::ffff:0.0.0.0]:4600/", Private),
        ("https://127.0.0.2:4600/", Accepted),
        ("https://127.0.0.1:4601/", Accepted),
        ("https://[::1]:4600/", Accepted),
        ("https://10.0.0.1:4600/", Accepted),
    ];
    check_all(&own(all, &["127.0.0.1:4600"]), one.map(|(url, verdict)| (url.to_owned(), verdict))).await;
    // A listener on every address covers all addresses of this machine, and those of no other machine.
    let every = [
        ("https://127.0.0.1:4600/", Private),
        ("https://127.9.9.9:4600/", Private),
        ("https://[::1]:4600/", Private),
        ("https://[::]:4600/", Private),
        ("https://[::ffff:127.0.0.1]:4600/", Private),
        ("https://0.0.0.0:4600/", Private),
        ("https://127.0.0.1:4601/", Accepted),
        ("https://10.255.255.1:4600/", Accepted),
        ("https://8.8.8.8:4600/", Accepted),
    ];
    for listener in ["0.0.0.0:4600", "[::]:4600", "[::ffff:0.0.0.0]:4600"] {
        check_all(&own(all, &[listener]), every.map(|(url, verdict)| (url.to_owned(), verdict))).await;
    }
    let here = own_address().await;
    check_all(&own(all, &["0.0.0.0:4600"]), [(format!("https://{here}:4600/"), Private)]).await;
}

/// Returns the address from which this machine reaches others, or else a loopback address.
async fn own_address() -> std::net::IpAddr {
    let socket = tokio::net::UdpSocket::bind("0.0.0.0:0").await.unwrap();
    match socket.connect("192.0.2.1:9").await {
        Ok(()) => socket.local_addr().unwrap().ip(),
        Err(_) => [127, 0, 0, 1].into(),
    }
}

#[tokio::test]
async fn later_listener_of_the_server_is_rejected() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let client = client(&receiver.address.to_string(), &[]);
    let url = format!("http://{}/", receiver.address);
    client.send(post(&url)).await.unwrap();
    client.listens_on(receiver.address);
    assert_eq!(client.check(&url).await, Err(AddressRejection::Private));
}

#[tokio::test]
async fn own_listener_is_rejected_despite_allow_list() {
    let app = TestApp::with(On::Sqlite, api::Plan::Enterprise, &["--egress-allow-cidrs=127.0.0.0/8"]).await;
    // The server knows its address from its first response on.
    app.anonymous().get("/healthz").await;
    let port = app.url.rsplit(':').next().unwrap();
    let client = &app.app.outbound;
    assert_eq!(client.check(&format!("https://127.0.0.1:{port}/")).await, Err(AddressRejection::Private));
    let outcome = client.send(post(&format!("https://127.0.0.1:{port}/v1/me"))).await;
    assert_eq!(outcome.unwrap_err(), SendError::AddressRejected(AddressRejection::Private));
    client.check("https://127.0.0.1:1/").await.unwrap();
    app.stop().await;
}
