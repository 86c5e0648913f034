//! Requests that several files of this suite send.

use reqwest::Method;

use super::*;

impl Scene {
    /// Requests an evaluation of a trace, with more fields. Returns its path.
    pub async fn request_evaluation(&self, trace: &Value, metric: &str, more: Value) -> String {
        let mut body = json!({"trace_id": trace, "metric_name": metric});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = self.app.full_key().post("/v1/eval", &body).await;
        assert_eq!(reply.status, 202, "{body}: {}", reply.text());
        format!("/v1/eval/{}", reply.ok()["id"].as_str().unwrap())
    }

    /// Requests an evaluation and returns the result.
    pub async fn evaluate_trace(&self, trace: &Value, metric: &str, more: Value) -> Value {
        let path = self.request_evaluation(trace, metric, more).await;
        self.app.drain().await;
        self.get(&path).await
    }

    /// Creates an evaluator.
    pub async fn create_evaluator(&self, evaluator: Value) {
        let reply = self.app.full_key().post("/v1/evaluators", &evaluator).await;
        assert_eq!(reply.status, 201, "{evaluator}: {}", reply.text());
    }

    /// Sends a `PATCH` request.
    pub async fn patch(&self, path: &str, change: &Value) -> Reply {
        let key = self.app.full_key();
        key.send(key.request(Method::PATCH, path).json(change)).await
    }

    /// Returns the number of LLM evaluations used this month.
    pub async fn used_quota(&self) -> Value {
        self.get("/v1/me").await["usage"]["llm_evaluations"].clone()
    }
}

/// Returns the behaviour of a judge that gives this score.
pub fn scoring(score: f64) -> Behaviour {
    Behaviour::RepliesWith(json!({"reasoning": "So it is.", "score": score}).to_string())
}
