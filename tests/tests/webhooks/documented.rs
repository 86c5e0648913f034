//! The commands of `docs/webhooks.md` verify a captured delivery.

use std::{path::Path, process::Command};

use serde_json::json;

use crate::{installation::WEBHOOK_SECRET, receiver::Response, with_receivers};

/// Returns the commands of the page that verify a signature.
fn commands() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/webhooks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|it| it.split("```").next().unwrap().to_owned());
    blocks.filter(|it| it.contains("echo valid")).collect()
}

/// Runs commands in a folder and returns what they print.
fn run(commands: &str, folder: &Path, secret: &str) -> String {
    let output = Command::new("sh").args(["-c", commands]).env("SECRET", secret).current_dir(folder).output();
    let output = output.unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

with_receivers! {
    async fn documented_commands_verify_a_captured_delivery(home: Installation) {
        let commands = commands();
        assert_eq!(commands.len(), 2);
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        for secret in [WEBHOOK_SECRET, "ünïcödé 'quoted' $ecret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            let id = home.webhook_with(&receiver, json!({"secret": secret})).await;
            home.publish(0..1).await;
            home.app.drain().await;
            home.key().delete(&format!("/v1/webhooks/{id}")).await.ok();
            let request = receiver.received().pop().unwrap();
            let folder = tempfile::tempdir().unwrap();
            let headers: String = request.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            std::fs::write(folder.path().join("headers"), headers).unwrap();
            for (body, expected) in [(request.body.clone(), "valid\n"), ([&request.body[..], b" "].concat(), "")] {
                std::fs::write(folder.path().join("body"), body).unwrap();
                for it in &commands {
                    assert_eq!(run(it, folder.path(), secret), expected, "{secret}: {it}");
                }
            }
        }
    }
}
