//! Every kind of broken `Authorization` header.

use reqwest::{Method, header::HeaderValue};
use server::{access::session::Claims, clock::Clock};
use tests::{Caller, TestApp, on_both_databases};

use super::check_health;

/// Returns valid claims.
fn claims(app: &TestApp) -> Claims {
    Claims {
        sub: "someone".to_owned(),
        tenant_id: app.tenant.to_string(),
        role: "owner".to_owned(),
        exp: app.clock.now() / 1_000_000 + 3_600,
        nbf: None,
    }
}

fn signed(app: &TestApp, change: impl FnOnce(&mut Claims)) -> String {
    let mut claims = claims(app);
    change(&mut claims);
    format!("Bearer {}", app.app.sessions.issue(&claims).unwrap())
}

/// Returns the status of a request with these headers.
async fn status(anyone: &Caller, values: &[&[u8]]) -> u16 {
    let mut request = anyone.request(Method::GET, "/v1/me");
    for value in values {
        request = request.header("authorization", HeaderValue::from_bytes(value).unwrap());
    }
    let reply = anyone.send(request).await;
    if reply.status != 200 {
        reply.is(401, "unauthorized");
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
        // The response does not repeat the header.
        for value in values.iter().filter(|it| it.len() > 20) {
            assert!(!reply.text().contains(String::from_utf8_lossy(value).as_ref()), "{}", reply.text());
        }
    }
    reply.status
}

on_both_databases! {
    async fn broken_authorization_header_is_unauthorized(app: TestApp) {
        let (anyone, key) = (app.anonymous(), app.key_text());
        let session = signed(app, |_| {});
        let token = session.strip_prefix("Bearer ").unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let (head, body, sum) = (parts[0], parts[1], parts[2]);
        let cases: Vec<String> = [
            "", " ", "Bearer", "Bearer ", "Bearer  ", "Basic", "Basic dXNlcjpwYXNz", "Digest x", "Token x", "ApiKey x", "null", "undefined",
            "Bearer null", "Bearer undefined", "Bearer x", "Bearer lp_", "Bearer lp_x", "Bearer ..", "Bearer a.b.c", "Bearer ...", "Bearer e30.e30.e30",
            "Bearer %20", "Bearer \"\"", "Bearer ,", "Bearer Bearer", "Bearer ' OR 1=1 --", "Bearer ../../", "Bearer \\0",
        ]
        .into_iter()
        .map(str::to_owned)
        .chain([
            // A valid token in a wrong notation.
            key.to_owned(), token.to_owned(), format!("Bearer{key}"), format!("Basic {key}"), format!("Bearer: {key}"), format!("Bearer={key}"),
            format!("Bearer Bearer {key}"), format!("Bearer {key} {key}"), format!("Bearer {key},{key}"), format!("Bearer {key} x"),
            format!("Bearer \"{key}\""), format!("Bearer <{key}>"), format!("Bearer {key};"), format!("Bearer\t{key}"), format!("token {key}"),
            format!("Bearer%20{key}"), format!("Bearer {}", &key[..51]), format!("Bearer {key}a"), format!("Bearer {}", &key[1..]),
            format!("Bearer {}", key.to_uppercase()), format!("Bearer {}", key.to_lowercase()), format!("Bearer {}", key.replace("lp_", "LP_")),
            format!("Bearer {}", key.replace("lp_", "lp-")), format!("Bearer {}", key.replace("lp_", "sk_")),
            format!("Bearer {}", "x".repeat(8_193)), format!("Bearer {}", "A".repeat(12_000)), format!("Bearer {}.{}", "a".repeat(9_000), "b"),
            // A token with a part missing, repeated, exchanged or changed.
            format!("Bearer {head}.{body}"), format!("Bearer {head}.{body}."), format!("Bearer .{body}.{sum}"), format!("Bearer {head}..{sum}"),
            format!("Bearer {head}.{body}.{sum}.{sum}"), format!("Bearer {body}.{head}.{sum}"), format!("Bearer {token}="), format!("Bearer {token}A"),
            format!("Bearer {head}.{body}.{}", sum.chars().rev().collect::<String>()), format!("Bearer eyJhbGciOiJub25lIn0.{body}."),
            format!("Bearer eyJhbGciOiJub25lIn0.{body}.{sum}"), format!("Bearer eyJhbGciOiJSUzI1NiJ9.{body}.{sum}"),
            format!("Bearer eyJhbGciOiJIUzUxMiJ9.{body}.{sum}"), format!("Bearer e30.{body}.{sum}"),
            // Tokens with a valid signature and invalid claims.
            signed(app, |it| it.exp = 0), signed(app, |it| it.exp = -1), signed(app, |it| it.exp = i64::MIN),
            signed(app, |it| it.exp -= 3_606), signed(app, |it| it.nbf = Some(it.exp)), signed(app, |it| it.nbf = Some(i64::MAX)),
            signed(app, |it| it.sub = String::new()), signed(app, |it| it.role = String::new()), signed(app, |it| it.role = "Owner".to_owned()),
            signed(app, |it| it.role = "admin".to_owned()), signed(app, |it| it.tenant_id = String::new()),
            signed(app, |it| it.sub = "x".repeat(9_000)),
        ])
        .collect();
        for value in &cases {
            assert_eq!(status(&anyone, &[value.as_bytes()]).await, 401, "{}", &value[..value.len().min(120)]);
        }
        let good = format!("Bearer {key}");
        for values in [&[good.as_bytes(), good.as_bytes()][..], &[b"Bearer x", good.as_bytes()], &[good.as_bytes(), b""], &[good.as_bytes(), session.as_bytes()]] {
            assert_eq!(status(&anyone, values).await, 401, "one header, not {}", values.len());
        }
        for bytes in [&b"Bearer \xff\xfe"[..], b"Bearer caf\xc3\xa9", b"\xe2\x80\x8bBearer x", b"Bearer \xc2\xa0"] {
            assert_eq!(status(&anyone, &[bytes]).await, 401, "{bytes:x?}");
        }
        // A change of any character of a key, or of a token's signature, is rejected.
        for i in 0..key.len() {
            let mut changed = good.clone().into_bytes();
            let at = 7 + i;
            changed[at] = if changed[at] == b'x' { b'y' } else { b'x' };
            assert_eq!(status(&anyone, &[&changed]).await, 401, "character {i}");
        }
        for (i, _) in sum.char_indices() {
            let mut changed = session.clone().into_bytes();
            let at = session.len() - sum.len() + i;
            changed[at] = if changed[at] == b'A' { b'Q' } else { b'A' };
            assert_eq!(status(&anyone, &[&changed]).await, 401, "character {i} of the signature");
        }
        check_health(app).await;
    }

    async fn unusual_valid_authorization_header_is_accepted(app: TestApp) {
        let (anyone, key) = (app.anonymous(), app.key_text());
        let mut cases = ["Bearer ", "bearer ", "BEARER ", "bEaReR ", "Bearer   "].map(|it| format!("{it}{key}")).to_vec();
        cases.push(signed(app, |_| {}));
        cases.push(signed(app, |it| it.nbf = Some(it.exp - 3_600)));
        cases.push(signed(app, |it| it.exp = i64::MAX));
        cases.push(signed(app, |it| it.exp -= 3_598));
        cases.push(signed(app, |it| it.sub = "\u{1F600} '; --".to_owned()));
        for value in &cases {
            assert_eq!(status(&anyone, &[value.as_bytes()]).await, 200, "{value}");
        }
        // A token outside the header has no effect.
        anyone.get(&format!("/v1/me?access_token={key}&api_key={key}")).await.is(401, "unauthorized");
        let elsewhere = anyone.request(Method::GET, "/v1/me").header("x-api-key", key).header("cookie", format!("token={key}"));
        anyone.send(elsewhere).await.is(401, "unauthorized");
    }
}
