//! Retrieved documents, in the formats of vector stores and frameworks.

use api::SpanType;
use serde_json::{Map, Value};

use super::{
    Message, Step, Subject,
    json::{Budget, first, first_text},
    prompted,
};

/// Maximum number of documents that are read from one trace.
const MAX_DOCUMENTS: usize = 200;
/// Maximum nesting of wrappers around a list of documents.
const MAX_DEPTH: usize = 5;

/// Members that contain the text of a document.
const TEXT_MEMBERS: &[&str] = &[
    "content",
    "text",
    "page_content",
    "pageContent",
    "document",
    "passage",
    "chunk",
    "snippet",
    "body",
    "chunk_text",
    "excerpt",
    "summary",
];
/// Members of wrappers that contain the document.
const WRAPPER_MEMBERS: &[&str] = &[
    "document",
    "node",
    "kwargs",
    "payload",
    "fields",
    "_source",
    "metadata",
    "properties",
    "content",
    "data",
];
/// Members of a response that contain the list of documents.
const LIST_MEMBERS: &[&str] = &[
    "documents",
    "docs",
    "results",
    "matches",
    "hits",
    "nodes",
    "source_nodes",
    "source_documents",
    "retrieved_documents",
    "chunks",
    "passages",
    "retrievalResults",
    "contexts",
    "context",
    "points",
    "value",
    "items",
    "output",
    "outputs",
    "result",
    "data",
];

/// A retrieved document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The ID or source of the document.
    pub id: Option<String>,
    /// The relevance to the query, as reported by the retriever.
    pub score: Option<f64>,
    /// The text of the document.
    pub text: String,
}

impl std::fmt::Display for Document {
    /// Formats the document for a judge.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "document {}:\n{}", self.id.as_deref().unwrap_or("without id"), self.text)
    }
}

/// Returns the documents of a trace in the order of retrieval, each text once.
///
/// The documents come from spans of type `retrieval` and from `documents` in metadata. Without those, they
/// come from other spans whose output is clearly a list of search results, and finally from a prompt that
/// contains its context under a heading.
pub(super) fn of(subject: &Subject, prompt: &[Message], budget: &mut Budget) -> Vec<Document> {
    let mut found = of_metadata(&subject.metadata, budget);
    for step in &subject.steps {
        let documents = of_step(step, budget);
        // A reranking narrows down earlier results.
        if !documents.is_empty()
            && step.name.to_ascii_lowercase().contains("rerank")
            && documents.iter().all(|it| found.iter().any(|known| known.text == it.text))
        {
            found = documents;
        } else {
            found.extend(documents);
        }
    }
    if found.is_empty() {
        found.extend(subject.steps.iter().flat_map(|step| of_results(step, budget)));
    }
    if found.is_empty() {
        found = prompted::documents(prompt);
    }
    let mut documents: Vec<Document> = Vec::new();
    for document in found {
        if documents.len() < MAX_DOCUMENTS && !documents.iter().any(|it| it.text == document.text) {
            documents.push(document);
        }
    }
    documents
}

fn of_metadata(metadata: &Map<String, Value>, budget: &mut Budget) -> Vec<Document> {
    const MEMBER_NAMES: &[&str] =
        &["documents", "retrieved_documents", "retrieved_context", "contexts", "context"];
    let Some(value) = first(metadata, MEMBER_NAMES) else { return Vec::new() };
    let mut documents = Vec::new();
    match (value, budget.unpacked(value)) {
        (_, Some(value)) => collect(&value, &mut documents, 0),
        (value, None) => collect(value, &mut documents, 0),
    }
    documents
}

fn of_step(step: &Step, budget: &mut Budget) -> Vec<Document> {
    let mut documents = of_metadata(&step.metadata, budget);
    if step.kind == SpanType::Retrieval
        && let Some(output) = step.output.as_deref().filter(|it| !it.trim().is_empty())
    {
        // The output may contain more text than the excerpt in the metadata.
        let mut whole = Vec::new();
        match budget.parse(output) {
            Some(value) => collect(&value, &mut whole, 0),
            None => whole.push(Document { text: output.to_owned(), ..Document::default() }),
        }
        if whole.len() >= documents.len() {
            documents = whole;
        }
    }
    documents
}

/// Returns the search results in the output of a span without the type `retrieval`.
fn of_results(step: &Step, budget: &mut Budget) -> Vec<Document> {
    let is_candidate = matches!(step.kind, SpanType::Tool | SpanType::Other);
    let Some(output) = step.output.as_deref().filter(|_| is_candidate) else { return Vec::new() };
    let Some(Value::Array(items)) = budget.parse(output) else { return Vec::new() };
    let is_result = |it: &Value| {
        it.as_object().is_some_and(|it| {
            !it.contains_key("role")
                && first_text(it, TEXT_MEMBERS).is_some()
                && (score(it).is_some() || it.contains_key("page_content") || it.contains_key("document"))
        })
    };
    if items.is_empty() || !items.iter().all(is_result) {
        return Vec::new();
    }
    let mut documents = Vec::new();
    collect(&Value::Array(items), &mut documents, 0);
    documents
}

fn collect(value: &Value, documents: &mut Vec<Document>, depth: usize) {
    if depth > MAX_DEPTH || documents.len() >= MAX_DOCUMENTS {
        return;
    }
    match value {
        Value::String(text) if !text.trim().is_empty() => {
            documents.push(Document { text: text.clone(), ..Document::default() });
        }
        Value::Array(items) => {
            items.iter().take(MAX_DOCUMENTS).for_each(|it| collect(it, documents, depth + 1))
        }
        Value::Object(object) => {
            if let Some(document) = one(object) {
                documents.push(document);
            } else if let Some(list) = LIST_MEMBERS
                .iter()
                .filter_map(|name| object.get(*name))
                .find(|it| it.is_array() || it.is_object())
            {
                collect(list, documents, depth + 1);
            }
        }
        _ => {}
    }
}

fn one(object: &Map<String, Value>) -> Option<Document> {
    // Wrapped documents first: `{"document": {…}, "score": …}`, `{"node": {"text": …}}`.
    let inner = WRAPPER_MEMBERS.iter().find_map(|name| {
        let inner = object.get(*name)?.as_object()?;
        first_text(inner, TEXT_MEMBERS).map(|text| (inner, text))
    });
    let (inner, text) = match first_text(object, TEXT_MEMBERS) {
        Some(text) => (object, text.to_owned()),
        None => match inner {
            Some((inner, text)) => (inner, text.to_owned()),
            None => (object, parts(object)?),
        },
    };
    Some(Document {
        id: id(object).or_else(|| id(inner)),
        score: score(object).or_else(|| score(inner)),
        text,
    })
}

/// Returns the text of a document whose content is a list of parts.
fn parts(object: &Map<String, Value>) -> Option<String> {
    let parts = object.get("content")?.as_array()?;
    let texts: Vec<&str> = parts.iter().filter_map(|it| it.get("text")?.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn id(object: &Map<String, Value>) -> Option<String> {
    const MEMBER_NAMES: &[&str] =
        &["id", "_id", "doc_id", "document_id", "file_id", "source", "url", "uri", "filename", "title"];
    let own = MEMBER_NAMES.iter().find_map(|name| match object.get(*name)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    own.or_else(|| {
        let metadata = object.get("metadata")?;
        first_text(metadata.as_object()?, &["source", "id", "url", "title", "file_name"]).map(str::to_owned)
    })
}

fn score(object: &Map<String, Value>) -> Option<f64> {
    const MEMBER_NAMES: &[&str] = &[
        "score",
        "relevance_score",
        "relevanceScore",
        "similarity",
        "similarity_score",
        "_score",
        "@search.score",
        "distance",
    ];
    first(object, MEMBER_NAMES)?.as_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(value: Value) -> Vec<String> {
        let mut documents = Vec::new();
        collect(&value, &mut documents, 0);
        documents.into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn every_shape_holds_the_same_documents() {
        for value in [
            json!(["a", "b"]),
            json!([{"id": "1", "content": "a", "score": 0.9}, {"id": "2", "content": "b"}]),
            json!({"documents": [{"page_content": "a", "metadata": {"source": "x"}}, {"page_content": "b"}]}),
            json!([{"document": {"page_content": "a"}, "score": 1}, {"document": {"page_content": "b"}}]),
            json!([{"lc": 1, "kwargs": {"page_content": "a"}}, {"lc": 1, "kwargs": {"page_content": "b"}}]),
            json!([{"node": {"text": "a", "id_": "n"}, "score": 0.1}, {"node": {"text": "b"}}]),
            json!({"matches": [{"id": "1", "score": 1, "metadata": {"text": "a"}}, {"metadata": {"text": "b"}}]}),
            json!({"hits": {"hits": [{"_id": "1", "_source": {"body": "a"}}, {"_source": {"body": "b"}}]}}),
            json!({"result": {"points": [{"payload": {"text": "a"}}, {"payload": {"text": "b"}}]}}),
            json!({"ids": [["1", "2"]], "documents": [["a", "b"]], "distances": [[0.1, 0.2]]}),
            json!({"retrievalResults": [{"content": {"text": "a"}, "score": 1}, {"content": {"text": "b"}}]}),
            json!({"data": [{"file_id": "f", "content": [{"type": "text", "text": "a"}]}, {"content": [{"type": "text", "text": "b"}]}]}),
        ] {
            assert_eq!(texts(value.clone()), ["a", "b"], "{value}");
        }
    }

    #[test]
    fn ids_and_scores_are_kept() {
        let value = json!({"page_content": "a", "metadata": {"source": "policy.md"}, "score": 0.5});
        let document = one(value.as_object().unwrap()).unwrap();
        assert_eq!((document.id.as_deref(), document.score), (Some("policy.md"), Some(0.5)));
    }

    #[test]
    fn only_search_results_are_taken_from_other_spans() {
        let step = |output: Value| Step { output: Some(output.to_string()), ..Step::default() };
        let count = |output| of_results(&step(output), &mut Budget::new()).len();
        assert_eq!(count(json!([{"id": "1", "content": "a", "score": 0.9}])), 1);
        assert_eq!(count(json!([{"role": "assistant", "content": "a", "score": 0.9}])), 0);
        assert_eq!(count(json!([{"content": "a"}, {"x": 1}])), 0);
        assert_eq!(count(json!({"content": "a", "score": 1})), 0);
    }
}
