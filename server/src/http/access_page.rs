//! Renders `docs/access.md`: access requirements and limits, from the routes.

use std::fmt::Write;

use api::Plan;
use store::{quotas::Quota, rates::RateBucket};

use super::route::{AuthSchemes, Route};
use crate::access::{
    Access, Keys,
    plans::{limits, monthly_limit, requests_per_minute},
};

/// Returns the page in Markdown. A test compares it with the file in the documentation.
pub fn render(routes: &[Route]) -> String {
    let mut page = String::from(PAGE_INTRODUCTION);
    for route in routes.iter().filter(|it| it.schemes == AuthSchemes::BearerOrBasic) {
        // Writing to a String cannot fail.
        _ = writeln!(page, "`{}` also accepts {BASIC_AUTHENTICATION}", route.path);
    }
    page.push_str(
        "| Method | Path | Role | API keys | Plan | Counts towards | Audited |\n|---|---|---|---|---|---|---|\n",
    );
    for route in routes {
        let (role, keys, plan) = match route.access {
            Access::Open => ("no token", "", ""),
            Access::Token { role, keys, plan } => (role.as_str(), keys_word(keys), plan.as_str()),
        };
        let bucket = if route.is_rate_limited() { route.bucket.as_str() } else { "" };
        let audited = route.audited.map_or("", |it| it.as_str());
        table_row(
            &mut page,
            &[route.method.as_str(), &format!("`{}`", route.path), role, keys, plan, bucket, audited],
        );
    }
    page.push_str(
        "\n## Requests per minute\n\nFor all callers of a tenant together, in windows of one minute.\n\n",
    );
    table_head(&mut page, "Counts towards");
    for bucket in RateBucket::ALL {
        let cells = Plan::ALL.iter().map(|plan| limit_text(requests_per_minute(bucket, *plan)));
        plan_row(&mut page, bucket.as_str(), cells);
    }
    page.push_str(
        "\n## Monthly quotas\n\nPer calendar month in UTC, except seats, which are taken until they are freed.\n\n",
    );
    table_head(&mut page, "What");
    plan_row(&mut page, "traces", Plan::ALL.iter().map(|it| limit_text(monthly_limit(Quota::Traces, *it))));
    plan_row(
        &mut page,
        "LLM evaluations",
        Plan::ALL.iter().map(|it| limit_text(monthly_limit(Quota::LlmEvaluations, *it))),
    );
    plan_row(&mut page, "members with a seat", Plan::ALL.iter().map(|it| limit_text(limits(*it).members)));
    page
}

const PAGE_INTRODUCTION: &str = "\
# Access

Generated from the route table by `LOUPE_UPDATE_DOCS=1 cargo nextest run -p tests --test access_requirements`. The same
test fails if this page is edited manually. Terms are defined in the [glossary](glossary.md).

A request is checked in this order: token, rate limit, scopes of the API key, kind of token, plan, role; then
the body, the resources that it names, and their state. *Role* is the lowest role that may call: viewer, member,
owner. An API key has the role of the user who created it. *API keys* tells which keys may call: `full` keys
without scopes, `query` also keys with that scope, `any` every key, `session only` none. *Plan* is the lowest
plan. *Counts towards* is the rate limit. *Audited* actions are recorded in the audit log, both executed and rejected
ones.

";

/// Describes a path that accepts Basic authentication.
const BASIC_AUTHENTICATION: &str = "\
Basic authentication with an API key as the password and
any user name, as sent by Langfuse's exporter. No other path accepts it.
";

fn keys_word(keys: Keys) -> &'static str {
    match keys {
        Keys::Refused => "session only",
        Keys::Full => "full",
        Keys::Query => "query",
        Keys::Any => "any",
    }
}

fn table_head(page: &mut String, first: &str) {
    let plans: Vec<&str> = Plan::ALL.iter().map(|it| it.as_str()).collect();
    // Writing to a String cannot fail.
    _ = writeln!(page, "| {first} | {} |\n|---|{}", plans.join(" | "), "---|".repeat(plans.len()));
}

fn plan_row(page: &mut String, first: &str, cells: impl Iterator<Item = String>) {
    _ = writeln!(page, "| {first} | {} |", cells.collect::<Vec<_>>().join(" | "));
}

fn table_row(page: &mut String, cells: &[&str]) {
    _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn limit_text(limit: Option<u64>) -> String {
    limit.map_or_else(|| "no limit".to_owned(), |it| it.to_string())
}
