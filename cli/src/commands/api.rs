//! `loupe api`: sends any request, with the credentials, retries and exit codes of the other commands.

use std::io::Read;

use ::api::client::{Auth, Body, Call, call::Method};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    pages::next_cursor,
};

/// Arguments of `api`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  loupe api GET /v1/traces -f limit=5 -f error=true\n  loupe api GET /v1/projects --all --jq '.projects[].name' --raw\n  loupe api POST /v1/ingest --input trace.json\n  loupe api PUT /v1/models/mine -f input_per_million=3 -f output_per_million=15\n"
)]
pub struct ApiArgs {
    /// GET, POST, PUT, PATCH, DELETE
    #[arg(value_parser = method)]
    method: Method,
    /// Path, with a leading slash
    path: String,
    /// Query parameter of a GET or DELETE, otherwise member of the JSON body; true, false, null and
    /// numbers become JSON values
    #[arg(short, long = "field", value_name = "NAME=VALUE")]
    field: Vec<String>,
    /// Body from a file; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "field")]
    input: Option<String>,
    /// Header
    #[arg(short = 'H', long = "header", value_name = "NAME:VALUE")]
    header: Vec<String>,
    /// Read all pages of a list and merge them
    #[arg(long)]
    all: bool,
    /// Show status and headers first
    #[arg(short, long)]
    include: bool,
    /// Credential to send; default: the one that the path requires
    #[arg(long, value_enum, value_name = "KIND")]
    auth: Option<AuthKind>,
}

/// Values of `--auth`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum AuthKind {
    Key,
    Session,
    None,
}

fn method(text: &str) -> std::result::Result<Method, String> {
    match text.to_uppercase().as_str() {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        _ => Err("must be GET, POST, PUT, PATCH or DELETE".to_owned()),
    }
}

/// Sends the request and writes the body of the response.
pub async fn run(ctx: &mut Ctx, args: ApiArgs) -> Result {
    let mut call = call(&args)?;
    let is_read = call.method == Method::GET;
    if !is_read && ctx.global.dry_run {
        return ctx.show_call(&call);
    }
    if !is_read {
        ctx.check_writable()?;
    }
    let client = ctx.client()?;
    let mut merged: Option<(String, Vec<Value>)> = None;
    loop {
        let response = client.send(&call).await?;
        if args.include && merged.is_none() {
            let mut head = format!("HTTP {}\n", response.status);
            for (name, value) in &response.headers {
                head.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
            }
            let head: String =
                head.lines().map(|line| ::api::text::printable(line).into_owned() + "\n").collect();
            ctx.out.write(&(head + "\n"))?;
        }
        let Ok(mut document) = response.json::<Value>() else {
            // Exports and HTML pages are not JSON: they are written line by line with control characters
            // made visible.
            let text = String::from_utf8_lossy(&response.body);
            let text: String =
                text.lines().map(|line| ::api::text::printable(line).into_owned() + "\n").collect();
            return ctx.out.write(&text);
        };
        if response.body.is_empty() {
            return Ok(());
        }
        if !args.all {
            return ctx.out.json(&document);
        }
        let Some((plural, rows)) = take_rows(&mut document) else {
            return ctx.out.json(&document);
        };
        let (_, all) = merged.get_or_insert_with(|| (plural.clone(), Vec::new()));
        all.extend(rows);
        match next_cursor(&document) {
            Some(cursor) => {
                call.query.retain(|(name, _)| name != "cursor");
                call = call.query("cursor", cursor);
            }
            None => {
                document[plural] = Value::Array(std::mem::take(all));
                document["has_more"] = json!(false);
                document["next_cursor"] = Value::Null;
                return ctx.out.json(&document);
            }
        }
    }
}

/// Removes and returns the rows of a list document, with the name of its only array.
fn take_rows(document: &mut Value) -> Option<(String, Vec<Value>)> {
    let members = document.as_object_mut().filter(|members| members.contains_key("has_more"))?;
    let (name, rows) = members.iter_mut().find(|(_, value)| value.is_array())?;
    match rows.take() {
        Value::Array(rows) => Some((name.clone(), rows)),
        _ => None,
    }
}

fn call(args: &ApiArgs) -> Result<Call<Value>> {
    if !args.path.starts_with('/') {
        return Err(CliError::usage(format!("`{}`: a path begins with a slash", args.path))
            .hint("for example loupe api GET /v1/traces"));
    }
    let (path, query) = args.path.split_once('?').unwrap_or((&args.path, ""));
    let mut call: Call<Value> = Call::new(args.method.clone(), path).with(auth(args, path));
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        call = call.query(name, value);
    }
    let fields = args.field.iter().map(|field| split(field, '=', "-f")).collect::<Result<Vec<_>>>()?;
    if matches!(args.method, Method::GET | Method::DELETE) {
        for (name, value) in fields {
            call = call.query(name, value);
        }
    } else if !fields.is_empty() {
        let members = fields.into_iter().map(|(name, value)| (name.to_owned(), literal(value)));
        call.body = Body::Json(Value::Object(members.collect::<Map<_, _>>()));
    }
    let mut headers = Vec::new();
    for header in &args.header {
        let (name, value) = split(header, ':', "-H")?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    if let Some(file) = &args.input {
        let bytes = read(file)?;
        call.body = match serde_json::from_slice(&bytes) {
            Ok(value) => Body::Json(value),
            Err(_) => Body::Bytes { content_type: "application/octet-stream", bytes },
        };
    }
    call.headers = headers;
    Ok(call)
}

fn auth(args: &ApiArgs, path: &str) -> Auth {
    match args.auth {
        Some(AuthKind::Key) => Auth::Key,
        Some(AuthKind::Session) => Auth::SessionOnly,
        Some(AuthKind::None) => Auth::None,
        None if !path.starts_with("/v1/") => Auth::None,
        None if path.starts_with("/v1/apikeys") && path != "/v1/apikeys/current" => Auth::SessionOnly,
        None if ["/v1/control", "/v1/members", "/v1/provider-credentials"]
            .iter()
            .any(|it| path.starts_with(it)) =>
        {
            Auth::SessionOnly
        }
        None if args.method == Method::GET || path.starts_with("/v1/ingest") => Auth::Key,
        None => Auth::Session,
    }
}

fn split<'a>(text: &'a str, at: char, flag: &str) -> Result<(&'a str, &'a str)> {
    text.split_once(at).ok_or_else(|| CliError::usage(format!("{flag} {text}: must be NAME{at}VALUE")))
}

fn literal(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_number() || value.is_boolean() || value.is_null() => value,
        _ => Value::String(text.to_owned()),
    }
}

fn read(file: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let failed =
        |error: std::io::Error| CliError::usage(format!("{file}: {}", ::api::plain::io_error(&error)));
    match file {
        "-" => _ = std::io::stdin().read_to_end(&mut bytes).map_err(failed)?,
        path => bytes = std::fs::read(path).map_err(failed)?,
    }
    Ok(bytes)
}
