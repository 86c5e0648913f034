//! OpenLLMetry's instrumentation of LlamaIndex: `traceloop.*` on spans named `<Class>.<kind>`.
//!
//! Arguments and results are dumps of LlamaIndex's objects; nodes are JSON inside JSON.

use api::SpanType;

use super::{
    attributes::Attributes,
    keys::Key,
    raw::{self, RawObject},
    text::{clean, push_json_str},
    vectors,
};

/// Suffixes of classes that retrieve or rank documents.
const RETRIEVER_SUFFIXES: &[&str] = &["Retriever", "Rerank", "Reranker", "NodePostprocessor"];
/// Arguments that contain the query, as text or as a `QueryBundle`.
const QUERY_ARGUMENTS: &[&str] = &["query_bundle", "str_or_query_bundle", "query"];

/// Recognizes the scope of this instrumentation.
pub(super) fn is_sender(scope: &str) -> bool {
    scope.ends_with("instrumentation.llamaindex")
}

/// Returns the span type that follows from the name of the class, or from the attributes of a tool.
pub(super) fn kind(attributes: &Attributes, scope: &str) -> Option<SpanType> {
    if !is_sender(scope) || attributes.has(Key::OperationName) {
        return None;
    }
    if attributes.has(Key::OpeninferenceToolName) {
        return Some(SpanType::Tool);
    }
    let class = attributes.str(Key::TraceloopName)?.split('.').next()?;
    RETRIEVER_SUFFIXES.iter().any(|it| class.ends_with(it)).then_some(SpanType::Retrieval)
}

/// Returns the query if the arguments contain nothing else; otherwise the arguments without vectors.
pub(super) fn input(attributes: &mut Attributes, scope: &str) -> Option<String> {
    if !is_sender(scope) {
        return None;
    }
    let sent = attributes.take_text(Key::TraceloopInput)?;
    Some(question(&sent).map(clean).unwrap_or_else(|| vectors::shortened(super::text::unquoted(sent))))
}

fn question(json: &str) -> Option<String> {
    let arguments = RawObject::parse(json)?;
    let mut members = arguments.members();
    let (name, value) = members.next()?;
    if !QUERY_ARGUMENTS.contains(&name) || members.next().is_some() {
        return None;
    }
    raw::string(value).or_else(|| RawObject::parse(value)?.text("query_str"))
}

/// Returns the text of a response if it contains nothing else; otherwise the result without vectors.
pub(super) fn output(attributes: &mut Attributes, scope: &str) -> Option<String> {
    if !is_sender(scope) {
        return None;
    }
    let sent = attributes.take_text(Key::TraceloopOutput)?;
    Some(response(&sent).map(clean).unwrap_or_else(|| vectors::shortened(super::text::unquoted(sent))))
}

fn response(json: &str) -> Option<String> {
    let result = RawObject::parse(json)?;
    // The metadata of the nodes by ID; retrievers repeat it in the documents.
    let says_more = |(name, value): (&str, &str)| {
        !(name == "response" || (name == "metadata" && all_empty(value)) || matches!(value, "[]" | "{}"))
    };
    if result.members().any(says_more) {
        return None;
    }
    result.text("response")
}

fn all_empty(json: &str) -> bool {
    RawObject::parse(json).is_some_and(|it| it.members().all(|(_, value)| value == "{}"))
}

/// Returns the nodes of a retriever as a JSON list of documents.
pub(super) fn documents(attributes: &mut Attributes, scope: &str) -> Option<String> {
    if kind(attributes, scope) != Some(SpanType::Retrieval) {
        return None;
    }
    let documents = documents_of(attributes.str(Key::TraceloopOutput)?)?;
    attributes.drop_key(Key::TraceloopOutput);
    Some(documents)
}

fn documents_of(json: &str) -> Option<String> {
    let items = raw::list(json).filter(|it| !it.is_empty())?;
    let mut out = String::from("[");
    for item in items {
        let dumped = raw::string(item);
        let scored = RawObject::parse(dumped.as_deref().unwrap_or(item))?;
        let node = scored.object("node")?;
        let resource = node.object("text_resource");
        let content = node.get("text").or_else(|| resource.as_ref()?.get("text"))?;
        let members = [
            ("id", node.first(&["id_", "node_id"])),
            ("content", Some(content)),
            ("score", scored.get("score")),
            ("metadata", node.get("metadata").filter(|it| *it != "{}")),
        ];
        out.push_str(if out.len() > 1 { ",{" } else { "{" });
        let mut first = true;
        for (name, value) in members {
            let Some(value) = value else { continue };
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            push_json_str(&mut out, name);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
    }
    out.push(']');
    Some(super::text::readable(clean(out)))
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    const SCOPE: &str = "opentelemetry.instrumentation.llamaindex";

    fn named(name: &str) -> Attributes {
        attributes(&[("traceloop.span.kind", "task"), ("traceloop.entity.name", name)])
    }

    #[test]
    fn llamaindex_retrievers_and_rerankers_are_retrieval_spans() {
        for (name, expected) in [
            ("VectorIndexRetriever.task", Some(SpanType::Retrieval)),
            ("BM25Retriever.workflow", Some(SpanType::Retrieval)),
            ("CohereRerank.task", Some(SpanType::Retrieval)),
            ("RetrieverQueryEngine.task", None),
            ("retrieve.task", None),
        ] {
            assert_eq!(kind(&named(name), SCOPE), expected, "{name}");
        }
        assert_eq!(kind(&named("VectorIndexRetriever.task"), "traceloop.tracer"), None);
    }

    #[test]
    fn llamaindex_query_and_response_are_plain_text() {
        let shown = |sent: &str, received: &str| {
            let mut given =
                attributes(&[("traceloop.entity.input", sent), ("traceloop.entity.output", received)]);
            (input(&mut given, SCOPE).unwrap_or_default(), output(&mut given, SCOPE).unwrap_or_default())
        };
        let bundle = r#"{"query_bundle": {"query_str": "Refunds?", "image_path": null, "embedding": null}}"#;
        let response = r#"{"response": "30 days.", "source_nodes": [], "metadata": {"a": {}}}"#;
        assert_eq!(shown(bundle, response), ("Refunds?".to_owned(), "30 days.".to_owned()));
        let more = r#"{"response": "30 days.", "metadata": {"a": {"file": "x"}}}"#;
        assert_eq!(
            shown(r#"{"query": "a", "top_k": 2}"#, more),
            (r#"{"query": "a", "top_k": 2}"#.to_owned(), more.to_owned())
        );
    }

    #[test]
    fn llamaindex_nodes_become_documents() {
        let mut given = attributes(&[
            ("traceloop.entity.name", "VectorIndexRetriever.task"),
            (
                "traceloop.entity.output",
                r#"["{\"node\": {\"id_\": \"n1\", \"metadata\": {}, \"text_resource\": {\"text\": \"Z\\u00fcrich\"}}, \"score\": 0.5}"]"#,
            ),
        ]);
        let expected = r#"[{"id":"n1","content":"Zürich","score":0.5}]"#;
        assert_eq!(documents(&mut given, SCOPE).as_deref(), Some(expected));
    }
}
