//! Traces of the three applications: a support agent with tools, a search over documentation, and code
//! reviews by several calls in parallel.

use api::{SpanType, deployment::ServedPrompt, ingest::TraceItem};
use fastrand::Rng;
use serde_json::json;

use super::{
    chat_model, error_messages,
    prompt_application::messages,
    texts::{DOCS_EXCHANGES, RETRIEVED_DOCUMENTS, REVIEW_COMMENTS, SUPPORT_EXCHANGES, USER_NAMES},
    trace_builder::TraceBuilder,
};

const SYSTEM_PROMPT: &str = "You are the friendly support agent of Acme. Answer in the customer's language.";
/// Percentage of traces that fail. `RECOVERED_PERCENT` is the percentage of traces that succeed at a retry.
const FAILED_PERCENT: u8 = 6;
const RECOVERED_PERCENT: u8 = 5;

/// A user's visit to one of the applications.
pub(super) struct UserVisit {
    /// The index of the project in `PROJECT_NAMES`.
    pub(super) project: usize,
    /// The number of traces of the visit.
    pub(super) turns: u32,
    /// The user.
    pub(super) user: &'static str,
    session: Option<String>,
}

impl UserVisit {
    /// Creates a random visit.
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let project = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2][rng.usize(..10)];
        let user = USER_NAMES[rng.usize(..USER_NAMES.len())];
        let session = format!("{}-{user}-{:06x}", ["chat", "search", "review"][project], rng.u32(..1 << 24));
        let turns = if project == 2 { 1 } else { rng.u32(1..7) };
        // Some visits have no session.
        Self { project, turns, user, session: Some(session).filter(|_| rng.u8(..10) > 0) }
    }

    /// Returns the next trace of the visit, which begins at `start` (microseconds). The support agent answers with the served
    /// prompt, if there is one.
    pub(super) fn next_trace(&self, rng: &mut Rng, start: i64, served: Option<&ServedPrompt>) -> TraceItem {
        match self.project {
            0 => self.support(rng, start, served),
            1 => self.search(rng, start),
            _ => self.review(rng, start),
        }
    }

    fn begin(&self, rng: &mut Rng, name: &str, start: i64, served: Option<&ServedPrompt>) -> TraceBuilder {
        let mut builder = TraceBuilder::new(rng, name, start);
        let release = pick(rng, &["2.14.0", "2.14.0", "2.15.0-rc1"]);
        let environment = if rng.u8(..8) == 0 { "staging" } else { "production" };
        let mut tags = vec![("env", environment), ("release", release)];
        if rng.u8(..12) == 0 {
            tags.push(("vip", ""));
        }
        tags.extend(served.iter().flat_map(|it| &it.tags).map(|it| (it.0.as_str(), it.1.as_str())));
        builder.set_user(self.user, self.session.as_deref(), &tags);
        builder
    }

    fn support(&self, rng: &mut Rng, start: i64, served: Option<&ServedPrompt>) -> TraceItem {
        let (question, answer) = SUPPORT_EXCHANGES[rng.usize(..SUPPORT_EXCHANGES.len())];
        let order = format!("A-{:05}", rng.u32(10_000..99_999));
        let (mut question, mut answer) =
            (question.replace("{order}", &order), answer.replace("{order}", &order));
        if rng.u8(..150) == 0 {
            question.push_str("\n\nHere is what the app logged:\n");
            question.push_str(
                &"2026-01-01T00:00:00Z WARN cart: price of item 4711 changed while paying\n".repeat(500),
            );
        }
        let mut builder = self.begin(rng, "support.answer", start, served);
        builder.set_metadata(&json!({"channel": pick(rng, &["web", "app", "e-mail"]), "language": "auto"}));
        let model = pick(rng, &["gpt-4o-mini", "gpt-4o-mini", "gpt-4o", "claude-sonnet-4-5"]);
        let request = messages(served.map_or(SYSTEM_PROMPT, |it| &it.template), &question);
        if served.is_some() {
            answer = chat_model::answer(model, request.as_array().map_or(&[], Vec::as_slice), 0);
        }
        let asked = request.to_string();
        if question.contains(&order) {
            let plan = builder.step("plan", SpanType::Llm, random_duration(rng, 380));
            let call = json!([{"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function",
                "function": {"name": "orders.lookup", "arguments": json!({"order": order}).to_string()}}]}]);
            builder.set_texts(plan, asked.clone(), call.to_string());
            builder.set_model_call(rng, plan, model);
            let tool = builder.step("orders.lookup", SpanType::Tool, random_duration(rng, 45));
            let found = json!({"order": order, "status": pick(rng, &["packed", "shipped", "delivered"]), "items": rng.u8(1..5), "total": {"amount": rng.u32(1_900..40_000), "currency": "EUR"}});
            builder.set_texts(tool, json!({"order": order}).to_string(), found.to_string());
        }
        let found = builder.step("faq.search", SpanType::Retrieval, random_duration(rng, 60));
        builder.set_texts(found, question.clone(), documents(rng));
        let final_call = FinalCall { name: "answer", model, prompt: &asked };
        final_call.finish(rng, builder, &question, &answer)
    }

    fn search(&self, rng: &mut Rng, start: i64) -> TraceItem {
        let (question, answer) = DOCS_EXCHANGES[rng.usize(..DOCS_EXCHANGES.len())];
        let mut builder = self.begin(rng, "docs.ask", start, None);
        let embedding = builder.step("embed", SpanType::Other, random_duration(rng, 35));
        builder.set_texts(embedding, question, "");
        if let Some(span) = builder.span(embedding) {
            span.model = Some("text-embedding-3-small".to_owned());
            span.prompt_tokens = Some(rng.i64(4..20));
            span.output = None;
        }
        let found = builder.step("vector.search", SpanType::Retrieval, random_duration(rng, 25));
        let passages = documents(rng);
        builder.set_texts(found, question, passages.clone());
        let sorted = builder.step("rerank", SpanType::Retrieval, random_duration(rng, 90));
        builder.set_texts(sorted, question, passages.clone());
        let prompt = json!([{"role": "system", "content": "Answer from the passages only and cite them."},
            {"role": "user", "content": format!("{question}\n\nPassages: {passages}")}]);
        let final_call = FinalCall { name: "write", model: "gpt-4.1-mini", prompt: &prompt.to_string() };
        final_call.finish(rng, builder, question, answer)
    }

    fn review(&self, rng: &mut Rng, start: i64) -> TraceItem {
        let mut builder = self.begin(rng, "review.pull_request", start, None);
        let number = rng.u16(100..2_000);
        builder.set_metadata(&json!({"repository": "acme/shop", "pull_request": number}));
        let diff = builder.step("git.diff", SpanType::Tool, random_duration(rng, 120));
        builder.set_texts(diff, json!({"pull_request": number}).to_string(), "diff --git a/src/auth/session.rs b/src/auth/session.rs\n@@ -12,7 +12,9 @@\n-    token == expected\n+    verify(token, expected)\n");
        let mut comments = Vec::new();
        for i in 0..rng.usize(2..6) {
            let (file, comment) = REVIEW_COMMENTS[rng.usize(..REVIEW_COMMENTS.len())];
            let took = random_duration(rng, 2_400);
            let call = match i {
                0 => builder.step("review.file", SpanType::Llm, took),
                _ => builder.parallel_step("review.file", SpanType::Llm, took),
            };
            let verdict = json!({"file": file, "line": rng.u16(1..400), "severity": pick(rng, &["info", "warning", "error"]), "comment": comment});
            let request = messages(SYSTEM_PROMPT, &chat_model::review_question(file));
            builder.set_texts(call, request.to_string(), verdict.to_string());
            builder.set_model_call(rng, call, "claude-sonnet-4-5");
            comments.push(verdict);
        }
        let asked = format!("Review acme/shop#{number}");
        let summary =
            json!({"comments": comments, "approve": comments.iter().all(|it| it["severity"] == "info")});
        let prompt = messages(SYSTEM_PROMPT, &summary.to_string()).to_string();
        let final_call = FinalCall { name: "summarise", model: "gpt-4o", prompt: &prompt };
        final_call.finish(rng, builder, &asked, &summary.to_string())
    }
}

/// The model call that ends a trace.
struct FinalCall<'a> {
    name: &'a str,
    model: &'a str,
    prompt: &'a str,
}

impl FinalCall<'_> {
    /// Adds the call to the trace and ends it. The call may fail, or fail once and then succeed.
    fn finish(self, rng: &mut Rng, mut builder: TraceBuilder, question: &str, answer: &str) -> TraceItem {
        let Self { name, model, prompt } = self;
        let roll = rng.u8(..100);
        if roll < FAILED_PERCENT {
            let error = error_messages::draw(rng);
            let took = if error.contains("imeout") { 60_000 } else { random_duration(rng, 300) };
            let call = builder.step(name, SpanType::Llm, took);
            builder.set_texts(call, prompt, "");
            builder.set_model_call(rng, call, model);
            builder.set_error(call, error);
            builder.add_event(call, "error", error);
            return builder.end(question, Err(error));
        }
        if roll < FAILED_PERCENT + RECOVERED_PERCENT {
            let call = builder.step(name, SpanType::Llm, random_duration(rng, 200));
            builder.set_texts(call, prompt, "");
            builder.set_model_call(rng, call, model);
            let error = error_messages::draw_temporary(rng);
            builder.set_error(call, error);
            builder.add_event(call, "warning", "trying again in 500 ms");
        }
        let call = builder.step(name, SpanType::Llm, random_duration(rng, 1_100));
        builder.set_texts(call, prompt, answer);
        builder.set_model_call(rng, call, model);
        if rng.u8(..9) == 0 {
            let check = builder.child_step(call, "guardrail", SpanType::Other);
            builder.add_event(check, "info", "nothing to object to");
        }
        builder.end(question, Ok(answer))
    }
}

/// Returns a trace of very many spans: the nightly build of the index.
pub(super) fn index_build(rng: &mut Rng, start: i64, pages: u32) -> TraceItem {
    let mut builder = TraceBuilder::new(rng, "docs.index", start);
    builder.set_user("cron", None, &[("env", "production"), ("job", "nightly")]);
    for page in 0..pages {
        let took = random_duration(rng, 40);
        let span = builder.step("embed.page", SpanType::Other, took);
        let (title, text) = RETRIEVED_DOCUMENTS[rng.usize(..RETRIEVED_DOCUMENTS.len())];
        builder.set_texts(span, format!("{title}, page {page}: {text}"), "1536 numbers");
        if page % 400 == 399 {
            builder.add_event(span, "info", &format!("{} pages done", page + 1));
        }
    }
    builder.end("everything that changed since yesterday", Ok(&format!("{pages} pages")))
}

fn pick<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.usize(..of.len())]
}

fn documents(rng: &mut Rng) -> String {
    let first = rng.usize(..RETRIEVED_DOCUMENTS.len());
    let found = (0..3).map(|i| {
        let (title, text) = RETRIEVED_DOCUMENTS[(first + i) % RETRIEVED_DOCUMENTS.len()];
        json!({"id": format!("doc-{}", (first + i) % RETRIEVED_DOCUMENTS.len()), "title": title, "content": text,
            "score": f64::from(95 - 11 * i as u32 - rng.u32(..10)) / 100.0})
    });
    serde_json::Value::Array(found.collect()).to_string()
}

/// Returns a random duration around `usual` in milliseconds, occasionally much longer.
fn random_duration(rng: &mut Rng, usual: i64) -> i64 {
    let tail = rng.f64().powi(4) * 5.0;
    (usual as f64 * (0.6 + rng.f64() * 0.6 + tail)) as i64
}
