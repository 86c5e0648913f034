//! Checks responses against the OpenAPI document.
//!
//! Every response in every suite is checked. Its status must be documented for the operation and its
//! content type for the status. Its JSON must match the schema: all required members, no wrong types, null
//! only where allowed, and no undocumented members. So neither the document nor the server can change
//! alone.

#![allow(clippy::panic, reason = "an undocumented response fails the test")]

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use jsonschema::{Draft, Validator};
use reqwest::Method;
use serde_json::{Map, Value, json};
use server::{features, http::openapi};

use crate::{Reply, declared};

/// The document, with all objects closed to undocumented members.
static STRICT_DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let document = serde_json::to_value(openapi::document(features::routes())).unwrap_or_default();
    let components = document["components"].clone();
    let mut strict = document;
    close(&mut strict, &components);
    strict
});

/// The compiled schemas, by their position in the document.
static SCHEMA_VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// Panics unless the response to `method` on `path` is documented.
///
/// # Panics
/// With all differences, if there are any.
pub fn check(method: &Method, path: &str, reply: &Reply) {
    let Some(route) = declared::route(method, path).filter(|_| *method != Method::HEAD) else { return };
    let (status, method) = (reply.status.to_string(), method.as_str().to_lowercase());
    let at = format!("{} {path}: {status}", method.to_uppercase());
    let Some(response) = STRICT_DOCUMENT["paths"][&route.path][&method]["responses"].get(&status) else {
        panic!("{at} is not documented: {}", reply.text())
    };
    let content = response.get("content").and_then(Value::as_object);
    let Some(content) = content.filter(|it| !it.is_empty()) else {
        assert!(reply.body.is_empty(), "{at} has a body, and none is documented: {}", reply.text());
        return;
    };
    let sent = reply.headers.get("content-type").and_then(|it| it.to_str().ok()).unwrap_or_default();
    let sent = sent.split(';').next().unwrap_or_default().trim();
    assert!(content.contains_key(sent), "{at} has the content type `{sent}`, which is not documented");
    if sent != "application/json" || content[sent].get("schema").is_none() {
        return;
    }
    let pointer =
        [route.path.as_str(), &method, &status, sent].map(|it| it.replace('~', "~0").replace('/', "~1"));
    let [route, method, status, sent] = pointer;
    let pointer = format!("/paths/{route}/{method}/responses/{status}/content/{sent}/schema");
    let body = reply.json();
    let wrong: Vec<String> =
        validator(&pointer).iter_errors(&body).map(|it| format!("{}: {it}", it.instance_path())).collect();
    assert!(wrong.is_empty(), "{at} is not as documented:\n  {}\nin {body}", wrong.join("\n  "));
}

fn validator(pointer: &str) -> Arc<Validator> {
    let mut validators = SCHEMA_VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = validators.get(pointer) {
        return Arc::clone(known);
    }
    let mut schema = STRICT_DOCUMENT.pointer(pointer).cloned().unwrap_or_default();
    schema["components"] = STRICT_DOCUMENT["components"].clone();
    let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
    let built = options.build(&schema).unwrap_or_else(|it| panic!("{pointer} is not a schema: {it}"));
    let built = Arc::new(built);
    validators.insert(pointer.to_owned(), Arc::clone(&built));
    built
}

/// Closes every object schema below a value. Members of `allOf` are closed together, by the schema that
/// contains them; references among them are inlined.
fn close(value: &mut Value, components: &Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::Array(parts)) = members.get_mut("allOf") {
                for part in parts.iter_mut() {
                    if let Some(name) = part["$ref"].as_str().and_then(|it| it.rsplit('/').next()) {
                        *part = components["schemas"][name].clone();
                    }
                    inside(part, components);
                }
                members.insert("unevaluatedProperties".to_owned(), json!(false));
                return;
            }
            let named = members.get("properties").is_some_and(Value::is_object);
            let is_open = !members.contains_key("additionalProperties");
            members.values_mut().for_each(|it| close(it, components));
            if named && is_open && members.get("type") == Some(&json!("object")) {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|it| close(it, components)),
        _ => {}
    }
}

/// Closes the schemas below a member of `allOf`, but not the member itself.
fn inside(part: &mut Value, components: &Value) {
    let properties = part.get_mut("properties").and_then(Value::as_object_mut);
    properties.map(Map::values_mut).into_iter().flatten().for_each(|it| close(it, components));
}
