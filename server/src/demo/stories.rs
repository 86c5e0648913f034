//! Traces of the three applications: a support agent with tools, a search over documentation, and code
//! reviews by several calls in parallel.

use api::{SpanType, ingest::TraceItem};
use fastrand::Rng;
use serde_json::json;

use super::{
    draft::Draft,
    failures,
    texts::{DOCS, DOCUMENTS, REVIEWS, SUPPORT, USERS},
};

const SYSTEM: &str = "You are the friendly support agent of Acme. Answer in the customer's language.";
/// Percentage of traces that fail. `RECOVERED` is the percentage of traces that succeed at a retry.
const FAILED: u8 = 6;
const RECOVERED: u8 = 5;

/// A user's visit to one of the applications.
pub(super) struct Visit {
    /// The index of the project in the cast.
    pub(super) project: usize,
    /// The number of traces of the visit.
    pub(super) turns: u32,
    user: &'static str,
    session: Option<String>,
}

impl Visit {
    /// Creates a random visit.
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let project = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2][rng.usize(..10)];
        let user = USERS[rng.usize(..USERS.len())];
        let session = format!("{}-{user}-{:06x}", ["chat", "search", "review"][project], rng.u32(..1 << 24));
        let turns = if project == 2 { 1 } else { rng.u32(1..7) };
        // Some visits have no session.
        Self { project, turns, user, session: Some(session).filter(|_| rng.u8(..10) > 0) }
    }

    /// Returns the next trace of the visit, which begins at `start` (microseconds).
    pub(super) fn tell(&self, rng: &mut Rng, start: i64) -> TraceItem {
        match self.project {
            0 => self.support(rng, start),
            1 => self.search(rng, start),
            _ => self.review(rng, start),
        }
    }

    fn begin(&self, rng: &mut Rng, name: &str, start: i64) -> Draft {
        let mut draft = Draft::new(rng, name, start);
        let release = one(rng, &["2.14.0", "2.14.0", "2.15.0-rc1"]);
        let environment = if rng.u8(..8) == 0 { "staging" } else { "production" };
        let mut tags = vec![("env", environment), ("release", release)];
        if rng.u8(..12) == 0 {
            tags.push(("vip", ""));
        }
        draft.told_by(self.user, self.session.as_deref(), &tags);
        draft
    }

    fn support(&self, rng: &mut Rng, start: i64) -> TraceItem {
        let (question, answer) = SUPPORT[rng.usize(..SUPPORT.len())];
        let order = format!("A-{:05}", rng.u32(10_000..99_999));
        let (mut question, answer) = (question.replace("{order}", &order), answer.replace("{order}", &order));
        if rng.u8(..150) == 0 {
            question.push_str("\n\nHere is what the app logged:\n");
            question.push_str(
                &"2026-01-01T00:00:00Z WARN cart: price of item 4711 changed while paying\n".repeat(500),
            );
        }
        let mut draft = self.begin(rng, "support.answer", start);
        draft.about(&json!({"channel": one(rng, &["web", "app", "e-mail"]), "language": "auto"}));
        let model = one(rng, &["gpt-4o-mini", "gpt-4o-mini", "gpt-4o", "claude-sonnet-4-5"]);
        let asked = messages(&question);
        if question.contains(&order) {
            let plan = draft.step("plan", SpanType::Llm, slow(rng, 380));
            let call = json!([{"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function",
                "function": {"name": "orders.lookup", "arguments": json!({"order": order}).to_string()}}]}]);
            draft.texts(plan, asked.clone(), call.to_string());
            draft.call(rng, plan, model);
            let tool = draft.step("orders.lookup", SpanType::Tool, slow(rng, 45));
            let found = json!({"order": order, "status": one(rng, &["packed", "shipped", "delivered"]), "items": rng.u8(1..5), "total": {"amount": rng.u32(1_900..40_000), "currency": "EUR"}});
            draft.texts(tool, json!({"order": order}).to_string(), found.to_string());
        }
        let found = draft.step("faq.search", SpanType::Retrieval, slow(rng, 60));
        draft.texts(found, question.clone(), documents(rng));
        let last = Last { name: "answer", model, prompt: &asked };
        last.tell(rng, draft, &question, &answer)
    }

    fn search(&self, rng: &mut Rng, start: i64) -> TraceItem {
        let (question, answer) = DOCS[rng.usize(..DOCS.len())];
        let mut draft = self.begin(rng, "docs.ask", start);
        let embedding = draft.step("embed", SpanType::Other, slow(rng, 35));
        draft.texts(embedding, question, "");
        if let Some(span) = draft.span(embedding) {
            span.model = Some("text-embedding-3-small".to_owned());
            span.prompt_tokens = Some(rng.i64(4..20));
            span.output = None;
        }
        let found = draft.step("vector.search", SpanType::Retrieval, slow(rng, 25));
        let passages = documents(rng);
        draft.texts(found, question, passages.clone());
        let sorted = draft.step("rerank", SpanType::Retrieval, slow(rng, 90));
        draft.texts(sorted, question, passages.clone());
        let prompt = json!([{"role": "system", "content": "Answer from the passages only and cite them."},
            {"role": "user", "content": format!("{question}\n\nPassages: {passages}")}]);
        let last = Last { name: "write", model: "gpt-4.1-mini", prompt: &prompt.to_string() };
        last.tell(rng, draft, question, answer)
    }

    fn review(&self, rng: &mut Rng, start: i64) -> TraceItem {
        let mut draft = self.begin(rng, "review.pull_request", start);
        let number = rng.u16(100..2_000);
        draft.about(&json!({"repository": "acme/shop", "pull_request": number}));
        let diff = draft.step("git.diff", SpanType::Tool, slow(rng, 120));
        draft.texts(diff, json!({"pull_request": number}).to_string(), "diff --git a/src/auth/session.rs b/src/auth/session.rs\n@@ -12,7 +12,9 @@\n-    token == expected\n+    verify(token, expected)\n");
        let mut comments = Vec::new();
        for i in 0..rng.usize(2..6) {
            let (file, comment) = REVIEWS[rng.usize(..REVIEWS.len())];
            let took = slow(rng, 2_400);
            let call = match i {
                0 => draft.step("review.file", SpanType::Llm, took),
                _ => draft.beside("review.file", SpanType::Llm, took),
            };
            let verdict = json!({"file": file, "line": rng.u16(1..400), "severity": one(rng, &["info", "warning", "error"]), "comment": comment});
            draft.texts(call, messages(&format!("Review {file}")), verdict.to_string());
            draft.call(rng, call, "claude-sonnet-4-5");
            comments.push(verdict);
        }
        let asked = format!("Review acme/shop#{number}");
        let summary =
            json!({"comments": comments, "approve": comments.iter().all(|it| it["severity"] == "info")});
        let prompt = messages(&summary.to_string());
        let last = Last { name: "summarise", model: "gpt-4o", prompt: &prompt };
        last.tell(rng, draft, &asked, &summary.to_string())
    }
}

/// The model call that ends a story.
struct Last<'a> {
    name: &'a str,
    model: &'a str,
    prompt: &'a str,
}

impl Last<'_> {
    /// Adds the call to the trace and ends it. The call may fail, or fail once and then succeed.
    fn tell(self, rng: &mut Rng, mut draft: Draft, question: &str, answer: &str) -> TraceItem {
        let Self { name, model, prompt } = self;
        let luck = rng.u8(..100);
        if luck < FAILED {
            let error = failures::draw(rng);
            let took = if error.contains("imeout") { 60_000 } else { slow(rng, 300) };
            let call = draft.step(name, SpanType::Llm, took);
            draft.texts(call, prompt, "");
            draft.call(rng, call, model);
            draft.fail(call, error);
            draft.note(call, "error", error);
            return draft.end(question, Err(error));
        }
        if luck < FAILED + RECOVERED {
            let call = draft.step(name, SpanType::Llm, slow(rng, 200));
            draft.texts(call, prompt, "");
            draft.call(rng, call, model);
            let error = failures::passing(rng);
            draft.fail(call, error);
            draft.note(call, "warning", "trying again in 500 ms");
        }
        let call = draft.step(name, SpanType::Llm, slow(rng, 1_100));
        draft.texts(call, prompt, answer);
        draft.call(rng, call, model);
        if rng.u8(..9) == 0 {
            let check = draft.within(call, "guardrail", SpanType::Other);
            draft.note(check, "info", "nothing to object to");
        }
        draft.end(question, Ok(answer))
    }
}

/// Returns a trace of very many spans: the nightly build of the index.
pub(super) fn nightly(rng: &mut Rng, start: i64, pages: u32) -> TraceItem {
    let mut draft = Draft::new(rng, "docs.index", start);
    draft.told_by("cron", None, &[("env", "production"), ("job", "nightly")]);
    for page in 0..pages {
        let took = slow(rng, 40);
        let span = draft.step("embed.page", SpanType::Other, took);
        let (title, text) = DOCUMENTS[rng.usize(..DOCUMENTS.len())];
        draft.texts(span, format!("{title}, page {page}: {text}"), "1536 numbers");
        if page % 400 == 399 {
            draft.note(span, "info", &format!("{} pages done", page + 1));
        }
    }
    draft.end("everything that changed since yesterday", Ok(&format!("{pages} pages")))
}

fn one<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.usize(..of.len())]
}

fn messages(question: &str) -> String {
    json!([{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]).to_string()
}

fn documents(rng: &mut Rng) -> String {
    let first = rng.usize(..DOCUMENTS.len());
    let found = (0..3).map(|i| {
        let (title, text) = DOCUMENTS[(first + i) % DOCUMENTS.len()];
        json!({"id": format!("doc-{}", (first + i) % DOCUMENTS.len()), "title": title, "content": text,
            "score": f64::from(95 - 11 * i as u32 - rng.u32(..10)) / 100.0})
    });
    serde_json::Value::Array(found.collect()).to_string()
}

/// Returns a random duration around `usual` in milliseconds, occasionally much longer.
fn slow(rng: &mut Rng, usual: i64) -> i64 {
    let tail = rng.f64().powi(4) * 5.0;
    (usual as f64 * (0.6 + rng.f64() * 0.6 + tail)) as i64
}
