//! `loupe traces send --otlp`: sends OTLP export requests, one in protobuf or any number in JSON, such as
//! the lines of `traces export --format otlp`.

use std::io::{BufRead, BufReader, Read};

use api::{
    client::{ApiResponse, Call, Client, calls},
    plain::{io_error, json_error},
};
use present::format::thousands;
use serde_json::{Value, json, value::RawValue};

use super::send::ProjectTarget;
use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
};

/// Sends the requests of the input, and reports refused spans.
pub async fn run(ctx: &mut Ctx, client: &Client, target: &ProjectTarget, input: Box<dyn Read>) -> Result {
    let mut input = BufReader::new(input);
    let start = input.fill_buf().map_err(|error| unreadable(&io_error(&error)))?;
    let is_json = start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let mut sent = SentRequests::default();
    let mut progress = ctx.out.waiting("requests");
    if is_json {
        for request in serde_json::Deserializer::from_reader(input).into_iter::<Box<RawValue>>() {
            let request = request.map_err(|error| unreadable(&json_error(&error)))?;
            let call = calls::ingest_otlp("application/json", request.get().as_bytes().to_vec());
            sent.send(ctx, client, &target.add_header(call)).await?;
            if !ctx.global.dry_run {
                progress.add(1, request.get().len());
            }
        }
    } else {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).map_err(|error| unreadable(&io_error(&error)))?;
        let call = calls::ingest_otlp("application/x-protobuf", bytes);
        sent.send(ctx, client, &target.add_header(call)).await?;
    }
    drop(progress);
    sent.report(ctx)
}

fn unreadable(why: &str) -> CliError {
    CliError::usage(format!("the export can't be read: {why}"))
        .hint("the input must be an OTLP export request in protobuf, or such requests in JSON, one per line")
}

/// Totals of the requests sent so far.
#[derive(Default)]
struct SentRequests {
    requests: usize,
    refused: i64,
    last: Value,
}

impl SentRequests {
    async fn send(&mut self, ctx: &mut Ctx, client: &Client, call: &Call<Value>) -> Result {
        if ctx.global.dry_run {
            return ctx.show_call(call);
        }
        ctx.check_writable()?;
        let response = client.send(call).await.map_err(|error| {
            let mut error = CliError::from(error);
            if self.requests > 0 {
                error.detail.push(format!("the first {} requests were sent", self.requests));
            }
            error
        })?;
        self.requests += 1;
        self.add_response(&response);
        Ok(())
    }

    /// Adds a response to the totals. The response to a protobuf request is protobuf, which is not parsed.
    fn add_response(&mut self, response: &ApiResponse) {
        let Ok(response) = response.json::<Value>() else { return };
        self.refused += match response.pointer("/partialSuccess/rejectedSpans") {
            // OTLP's JSON encodes 64-bit integers as strings.
            Some(Value::String(count)) => count.parse().unwrap_or_default(),
            Some(count) => count.as_i64().unwrap_or_default(),
            None => 0,
        };
        self.last = response;
    }

    fn report(self, ctx: &mut Ctx) -> Result {
        if ctx.global.dry_run {
            return Ok(());
        }
        let Self { requests, refused, last } = self;
        ctx.out.note(&format!("{} sent, {} spans refused", thousands(requests), thousands(refused)));
        if ctx.out.format.is_json() {
            let several = json!({ "requests": requests, "rejected_spans": refused });
            ctx.out.json(if requests == 1 { &last } else { &several })?;
        }
        if refused == 0 {
            return Ok(());
        }
        let why = last.pointer("/partialSuccess/errorMessage").and_then(Value::as_str).map(str::to_owned);
        let mut error = CliError::new(Exit::Refused, format!("{refused} spans were refused"));
        error.hint = why;
        Err(error)
    }
}
