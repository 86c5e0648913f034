//! Tests of the program's end after a signal.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "waits for a process from the thread of its test")]

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::stub::{Reply, Stub, traces};

/// Starts `loupe` with a stdin that stays open.
fn start(stub: &Stub, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_loupe"))
        .env_clear()
        .env("LOUPE_CONFIG_DIR", stub.dir.path())
        .env("LOUPE_URL", stub.url())
        .env("LOUPE_API_KEY", "lp_test")
        .env("LOUPE_WEBHOOK_SECRET", "0123456789abcdef")
        .current_dir(stub.dir.path())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until the process catches SIGTERM and SIGINT, and a little longer for its command to begin.
fn wait_until_ready(child: &Child) {
    let start = Instant::now();
    let catches_signals = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
        Some([2, 15].iter().all(|signal| mask & 1 << (signal - 1) != 0))
    };
    // Systems without this file only wait for the given time.
    while !catches_signals().unwrap_or(true) && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
}

fn ended(child: &mut Child) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    None
}

#[test]
fn signals_end_commands_with_the_documented_code() {
    let stub = Stub::new(|request, _| {
        // The live stream stays open.
        if request.path.ends_with("/stream") {
            std::thread::sleep(Duration::from_secs(30));
        }
        Reply::json(traces(0..2, None))
    });
    for arguments in [
        &["traces", "tail", "--poll"][..],
        &["traces", "tail"],
        &["traces", "send", "-"],
        &["traces", "send", "-", "--otlp"],
        &["search", "--vector", "-"],
        &["api", "POST", "/v1/ingest", "--input", "-"],
        &["auth", "login", "--key", "-", "--no-check"],
        &["evaluators", "create", "x", "--rubric", "-"],
        &["webhooks", "listen", "--port", "0"],
    ] {
        for (signal, code) in [("-TERM", 143), ("-INT", 130)] {
            let mut child = start(&stub, arguments);
            wait_until_ready(&child);
            let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
            assert!(sent.success());
            assert_eq!(ended(&mut child), Some(code), "{arguments:?} {signal}");
        }
    }
}
