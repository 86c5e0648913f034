//! Addresses of webhooks: rejected with the codes of the specification, when stored and when changed.

use serde_json::json;
use tests::{TestApp, on_both_databases};

const NOT_HTTPS_CODE: &str = "webhook.url.not_https";
const PRIVATE_IP_CODE: &str = "webhook.url.private_ip";
const UNRESOLVABLE_CODE: &str = "webhook.url.unresolvable";

/// Addresses and their codes. The suite of the outbound guard has all notations.
const REJECTED_URLS: &[(&str, &str)] = &[
    ("http://example.com/", NOT_HTTPS_CODE),
    ("HTTP://example.com/", NOT_HTTPS_CODE),
    ("http://127.0.0.1/", NOT_HTTPS_CODE),
    ("ftp://example.com/", NOT_HTTPS_CODE),
    ("file:///etc/passwd", NOT_HTTPS_CODE),
    ("javascript:alert(1)", NOT_HTTPS_CODE),
    ("data:text/plain,x", NOT_HTTPS_CODE),
    ("example.com", NOT_HTTPS_CODE),
    ("//example.com/", NOT_HTTPS_CODE),
    ("https:example.com", NOT_HTTPS_CODE),
    ("https:///", NOT_HTTPS_CODE),
    ("https://", NOT_HTTPS_CODE),
    ("", NOT_HTTPS_CODE),
    (" https://example.com/", NOT_HTTPS_CODE),
    ("https://example.com/\n", NOT_HTTPS_CODE),
    ("https://exa\tmple.com/", NOT_HTTPS_CODE),
    ("https://user:secret@example.com/", NOT_HTTPS_CODE),
    ("https://example.com@evil.example/", NOT_HTTPS_CODE),
    ("https://example.com\\@127.0.0.1/", NOT_HTTPS_CODE),
    ("https://example%2ecom/", NOT_HTTPS_CODE),
    ("https://example.com:0/", NOT_HTTPS_CODE),
    ("https://example.com:99999/", NOT_HTTPS_CODE),
    ("https://127.0.0.1/", PRIVATE_IP_CODE),
    ("https://127.1/", PRIVATE_IP_CODE),
    ("https://2130706433/", PRIVATE_IP_CODE),
    ("https://0x7f000001/", PRIVATE_IP_CODE),
    ("https://0177.0.0.1/", PRIVATE_IP_CODE),
    ("https://0.0.0.0/", PRIVATE_IP_CODE),
    ("https://10.0.0.1/", PRIVATE_IP_CODE),
    ("https://172.16.0.1/", PRIVATE_IP_CODE),
    ("https://192.168.1.1/", PRIVATE_IP_CODE),
    ("https://169.254.169.254/latest/meta-data/", PRIVATE_IP_CODE),
    ("https://100.64.0.1/", PRIVATE_IP_CODE),
    ("https://224.0.0.1/", PRIVATE_IP_CODE),
    ("https://255.255.255.255/", PRIVATE_IP_CODE),
    ("https://192.0.2.1/", PRIVATE_IP_CODE),
    ("https://[::1]/", PRIVATE_IP_CODE),
    ("https://[::]/", PRIVATE_IP_CODE),
    ("https://[fe80::1]/", PRIVATE_IP_CODE),
    ("https://[fc00::1]/", PRIVATE_IP_CODE),
    ("https://[ff02::1]/", PRIVATE_IP_CODE),
    ("https://[::ffff:127.0.0.1]/", PRIVATE_IP_CODE),
    ("https://[64:ff9b::7f00:1]/", PRIVATE_IP_CODE),
    ("https://[2002:7f00:1::]/", PRIVATE_IP_CODE),
    ("https://localhost/", PRIVATE_IP_CODE),
    ("https://a.localhost/", PRIVATE_IP_CODE),
    ("https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", PRIVATE_IP_CODE),
    ("https://intranet/", PRIVATE_IP_CODE),
    ("https://mixed.example/", PRIVATE_IP_CODE),
    ("https://nowhere.example/", UNRESOLVABLE_CODE),
    ("https://example.com.evil.example/", UNRESOLVABLE_CODE),
];

const ACCEPTED_URLS: &[&str] = &[
    "https://example.com",
    "https://example.com/hook?token=a%20b&x=%2F",
    "https://example.com:8443/hook#part",
    "HTTPS://EXAMPLE.COM/Hook",
    "https://93.184.216.34/hook",
    "https://[2606:4700:4700::1111]:8443/",
    "https://bücher.example/",
];

fn set_names(app: &TestApp) {
    let names: [(&str, &[&str]); 4] = [
        ("example.com", &["93.184.216.34"]),
        ("xn--bcher-kva.example", &["93.184.216.34"]),
        ("intranet", &["10.0.0.5"]),
        ("mixed.example", &["93.184.216.34", "127.0.0.1"]),
    ];
    for (name, addresses) in names {
        let addresses: Vec<_> = addresses.iter().map(|it| it.parse().unwrap()).collect();
        app.resolver.set(name, &addresses);
    }
}

on_both_databases! {
    async fn rejected_addresses_have_the_codes_of_the_specification(app: TestApp) {
        set_names(app);
        let key = app.full_key();
        let good = json!({"url": "https://example.com/", "secret": "0123456789abcdef"});
        let stored = key.post("/v1/webhooks", &good).await.ok();
        let path = format!("/v1/webhooks/{}", stored["id"].as_str().unwrap());
        for (url, code) in REJECTED_URLS {
            let created = key.post("/v1/webhooks", &json!({"url": url, "secret": "0123456789abcdef"})).await;
            let changed = key.send(key.request(reqwest::Method::PATCH, &path).json(&json!({"url": url}))).await;
            for reply in [created, changed] {
                assert_eq!((reply.status, reply.code().as_deref()), (422, Some(*code)), "{url}: {}", reply.text());
                let body = reply.json();
                assert_eq!(body["error"], *code, "{url}");
                assert!(body["message"].as_str().unwrap().len() > 10, "{url}");
                assert_eq!(body["fields"][0]["field"], "url");
            }
        }
        assert_eq!(key.get("/v1/webhooks").await.ok()["webhooks"], json!([stored]));
    }

    async fn accepted_address_is_shown_as_given(app: TestApp) {
        set_names(app);
        for url in ACCEPTED_URLS {
            let made = app.full_key().post("/v1/webhooks", &json!({"url": url, "secret": "0123456789abcdef"})).await;
            assert_eq!((made.status, &made.json()["url"]), (201, &json!(url)));
        }
    }

    /// The server's own addresses are never reached, not even if they are allowed.
    async fn own_address_is_rejected(app: TestApp) {
        let own = app.url.replace("http://", "https://");
        let reply = app.full_key().post("/v1/webhooks", &json!({"url": own, "secret": "0123456789abcdef"})).await;
        reply.is(422, "webhook.url.private_ip");
    }
}
