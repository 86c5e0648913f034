//! The page that says who may call what, made from the table of routes.

use std::fmt::Write;

use api::Plan;
use store::{quotas::Quota, rates::RateBucket};

use super::routes;
use crate::access::{
    Access, Keys,
    plans::{limits, monthly_limit, requests_per_minute},
};

/// The page, in Markdown. It is kept in the documentation, where a test compares it with this.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str(
        "| Method | Path | Role | API keys | Plan | Counts to | Audited |\n|---|---|---|---|---|---|---|\n",
    );
    for route in routes::all() {
        let (role, keys, plan) = match route.access {
            Access::Open => ("no token", "", ""),
            Access::Token { role, keys, plan } => (role.as_str(), keys_word(keys), plan.as_str()),
        };
        let bucket = if routes::is_rate_limited(route.path) { route.bucket.as_str() } else { "" };
        let audited = route.audited.map_or("", |it| it.as_str());
        line(
            &mut page,
            &[route.method.as_str(), &format!("`{}`", route.path), role, keys, plan, bucket, audited],
        );
    }
    page.push_str(
        "\n## Requests a minute\n\nAll callers of a tenant together, in windows of one minute.\n\n",
    );
    head(&mut page, "Counts to");
    for bucket in RateBucket::ALL {
        let cells = Plan::ALL.iter().map(|plan| number(requests_per_minute(bucket, *plan)));
        row(&mut page, bucket.as_str(), cells);
    }
    page.push_str(
        "\n## A month\n\nCalendar months in UTC. Seats are not by the month: they are taken until freed.\n\n",
    );
    head(&mut page, "What");
    row(&mut page, "traces", Plan::ALL.iter().map(|it| number(monthly_limit(Quota::Traces, *it))));
    row(
        &mut page,
        "evaluations by judges",
        Plan::ALL.iter().map(|it| number(monthly_limit(Quota::LlmEvaluations, *it))),
    );
    row(&mut page, "members with a seat", Plan::ALL.iter().map(|it| number(limits(*it).members)));
    page
}

const INTRODUCTION: &str = "\
# Access

Made from the table of routes by `LOUPE_UPDATE_DOCS=1 cargo nextest run -p tests --test access`;
changed by hand, it fails the same test.

A request passes, in this order: the token, the rate limit, the scopes of a key, the kind of
token, the plan, the role; then its body, what it names, and what state that is in. *Role* is the
lowest that may call: viewer, member, owner. A key has the role of whoever made it. *API keys*
says which keys may call: `full` those without scopes, `query` those with that scope too, `any`
every key, `session only` none. *Plan* is the lowest. *Audited* actions are written down, whether
they were done or refused.

`/api/public/otel/v1/traces` also accepts Basic authentication with an API key as the password and
any user name, which is what Langfuse's exporter sends. No other path accepts it.

";

fn keys_word(keys: Keys) -> &'static str {
    match keys {
        Keys::Refused => "session only",
        Keys::Full => "full",
        Keys::Query => "query",
        Keys::Any => "any",
    }
}

fn head(page: &mut String, first: &str) {
    let plans: Vec<&str> = Plan::ALL.iter().map(|it| it.as_str()).collect();
    // Writing to a String can't fail.
    _ = writeln!(page, "| {first} | {} |\n|---|{}", plans.join(" | "), "---|".repeat(plans.len()));
}

fn row(page: &mut String, first: &str, cells: impl Iterator<Item = String>) {
    _ = writeln!(page, "| {first} | {} |", cells.collect::<Vec<_>>().join(" | "));
}

fn line(page: &mut String, cells: &[&str]) {
    _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn number(limit: Option<u64>) -> String {
    limit.map_or_else(|| "no limit".to_owned(), |it| it.to_string())
}
