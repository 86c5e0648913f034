//! Resolves names and the last characters of ids to ids.

use api::{
    client::{
        Call, Client,
        calls::{self, Page},
    },
    eval::EvaluationFilter,
    eval_rule::EvalRule,
    failure_rule::FailureRule,
    filter::Filter,
    key::ApiKey,
    member::Member,
    page::MAX_LIMIT,
    policy::Policy,
    project::Project,
    webhook::Webhook,
};
use uuid::Uuid;

use crate::{
    config::{Settings, Sourced},
    error::{CliError, Result},
    exit::Exit,
    pages::{all, next_cursor},
};

/// Maximum number of pages of a list in which the end of an id is searched.
const RECENT_PAGES: usize = 10;
/// Minimum number of characters at the end of an id that identify a row.
const MIN_ID_SUFFIX_CHARS: usize = 4;
/// Minimum length of a prefix that identifies an API key: `lp_` and four characters.
const MIN_KEY_PREFIX_CHARS: usize = 7;

/// Returns the id of the project of this run, if one is set; looks up a name.
pub async fn current_project(client: &Client, settings: &Settings) -> Result<Option<Uuid>> {
    let Some(Sourced { value: wanted, source }) = &settings.project else {
        return Ok(None);
    };
    if let Ok(id) = wanted.parse() {
        return Ok(Some(id));
    }
    let found = project(client, wanted).await.map_err(|mut error| {
        if source != "flag" && error.exit == Exit::NotFound {
            error.detail.push(format!("the project comes from {source}; -p PROJECT selects another"));
        }
        error
    })?;
    Ok(Some(found.id))
}

/// Finds a project by id, by name, or by the end of its id.
pub async fn project(client: &Client, wanted: &str) -> Result<Project> {
    if let Ok(id) = wanted.parse() {
        return Ok(client.call(&calls::project(id)).await?);
    }
    let mut projects: Vec<Project> = all(client, "projects", |page| calls::projects(None, page)).await?;
    if let Some(at) = projects.iter().position(|project| project.name == wanted) {
        return Ok(projects.swap_remove(at));
    }
    let names: Vec<_> = projects.iter().take(20).map(|project| project.name.as_str()).collect();
    let hint = format!("projects: {}", names.join(", "));
    let matching: Vec<usize> =
        (0..projects.len()).filter(|at| ends_with(&projects[*at].id, wanted)).collect();
    match matching.as_slice() {
        [at] => Ok(projects.swap_remove(*at)),
        _ => Err(not_unique("project", wanted, matching.len()).hint(hint)),
    }
}

/// Finds an API key by id, by the end of its id, by prefix or by name.
pub async fn api_key(client: &Client, wanted: &str) -> Result<ApiKey> {
    let keys = api_keys(client).await?;
    let prefixed = |key: &ApiKey| wanted.len() >= MIN_KEY_PREFIX_CHARS && key.prefix.starts_with(wanted);
    let fits = |key: &ApiKey| {
        key.id.to_string() == wanted || key.name == wanted || prefixed(key) || ends_with(&key.id, wanted)
    };
    let mut found: Vec<ApiKey> = keys.into_iter().filter(fits).collect();
    match (found.pop(), found.len()) {
        (Some(key), 0) => Ok(key),
        (None, _) => Err(not_unique("API key", wanted, 0).hint("see `loupe keys list`")),
        (_, others) => Err(not_unique("API key", wanted, others + 1)
            .hint("use its id, which is unique: loupe keys list --fields name,prefix,id")),
    }
}

/// Returns every API key.
pub async fn api_keys(client: &Client) -> Result<Vec<ApiKey>> {
    all(client, "apikeys", calls::api_keys).await
}

/// Finds a member by id, by the end of its id, or by subject.
pub async fn member(client: &Client, wanted: &str) -> Result<Member> {
    let members: Vec<Member> = all(client, "members", calls::members).await?;
    let fits = |it: &Member| it.subject == wanted || it.id.to_string() == wanted || ends_with(&it.id, wanted);
    let mut found: Vec<Member> = members.into_iter().filter(fits).collect();
    match (found.pop(), found.len()) {
        (Some(member), 0) => Ok(member),
        (None, _) => Err(not_unique("member", wanted, 0).hint("see `loupe members list`")),
        (_, others) => Err(not_unique("member", wanted, others + 1).hint("see `loupe members list`")),
    }
}

/// Returns a trace id in a form that the server accepts: a complete id or an OpenTelemetry trace id (32
/// hexadecimal digits) unchanged, otherwise the id of the only recent trace whose id ends with the text.
pub async fn trace_id(client: &Client, settings: &Settings, wanted: &str) -> Result<String> {
    let digits = wanted.len() == 32 && wanted.bytes().all(|byte| byte.is_ascii_hexdigit());
    if digits || wanted.parse::<Uuid>().is_ok() {
        return Ok(wanted.to_owned());
    }
    let call = |project: Option<Uuid>, page: &Page| calls::traces(&Filter::default(), project, page);
    Ok(record(client, settings, TRACE_KIND, wanted, call).await?.to_string())
}

/// Finds a trace like [`trace_id`] and returns its id as a UUID; an OpenTelemetry trace id is the same 128
/// bits.
pub async fn trace(client: &Client, settings: &Settings, wanted: &str) -> Result<Uuid> {
    let id = trace_id(client, settings, wanted).await?;
    id.parse().map_err(|_| CliError::usage(format!("`{id}` is not a trace id")))
}

/// The names of a kind of record, in a list of the API and in messages.
#[derive(Clone, Copy, Debug)]
pub struct RecordKind {
    /// The article before the name.
    pub article: &'static str,
    /// The name.
    pub name: &'static str,
    /// The member of the list that contains the records.
    pub plural: &'static str,
    /// The command that lists the records, with the id in the last column.
    pub list: &'static str,
}

const TRACE_KIND: RecordKind =
    RecordKind { article: "a", name: "trace", plural: "traces", list: "loupe traces list" };
const EVALUATION_KIND: RecordKind =
    RecordKind { article: "an", name: "evaluation", plural: "evaluations", list: "loupe evals list" };
const EVAL_RULE_KIND: RecordKind =
    RecordKind { article: "an", name: "eval rule", plural: "eval_rules", list: "loupe rules list" };
const FAILURE_RULE_KIND: RecordKind = RecordKind {
    article: "a",
    name: "failure rule",
    plural: "failure_rules",
    list: "loupe failure-rules list",
};
const POLICY_KIND: RecordKind =
    RecordKind { article: "a", name: "policy", plural: "policies", list: "loupe policies list" };
const WEBHOOK_KIND: RecordKind =
    RecordKind { article: "a", name: "webhook", plural: "webhooks", list: "loupe webhooks list" };
const DELIVERY_KIND: RecordKind = RecordKind {
    article: "a",
    name: "delivery",
    plural: "deliveries",
    list: "loupe webhooks deliveries WEBHOOK",
};

/// Finds an evaluation by id, or a recent one by the end of its id.
pub async fn evaluation(client: &Client, settings: &Settings, wanted: &str) -> Result<Uuid> {
    record(client, settings, EVALUATION_KIND, wanted, |project_id, page| {
        calls::evaluations(&EvaluationFilter { project_id, ..EvaluationFilter::default() }, page)
    })
    .await
}

/// Finds a record by id, or a recent one by the end of its id. `call` returns a page of the list of the project of
/// this run, or of all projects, newest first.
pub async fn record<T>(
    client: &Client,
    settings: &Settings,
    kind: RecordKind,
    wanted: &str,
    call: impl Fn(Option<Uuid>, &Page) -> Call<T>,
) -> Result<Uuid> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    check_suffix(kind, wanted)?;
    let project = current_project(client, settings).await?;
    let elsewhere = match project {
        Some(_) => "older ones, and those of other projects, require the complete id",
        None => OLDER_ONES,
    };
    recent(client, kind, wanted, elsewhere, |page| call(project, page)).await
}

/// Refuses a text that cannot be the end of an id, before any request.
fn check_suffix(kind: RecordKind, wanted: &str) -> Result<()> {
    let plausible = |c: char| c.is_ascii_hexdigit() || c == '-';
    if wanted.len() >= MIN_ID_SUFFIX_CHARS && wanted.chars().all(plausible) {
        return Ok(());
    }
    let message =
        format!("`{wanted}` is not {} {} id, nor the last characters of one", kind.article, kind.name);
    Err(CliError::usage(message).hint(format!("ids are in the last column of `{}`", kind.list)))
}

/// Finds an eval rule by id, by the end of its id, or by its metric if only one rule has that metric.
pub async fn eval_rule(client: &Client, settings: &Settings, wanted: &str) -> Result<Uuid> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let project = current_project(client, settings).await?;
    let rules: Vec<EvalRule> = all(client, "eval_rules", |page| calls::eval_rules(project, page)).await?;
    named(EVAL_RULE_KIND, wanted, rules.iter().map(|it| (it.id, it.metric_name.as_str())))
}

/// Finds a failure rule by id, by the end of its id, or by its name if only one rule has that name.
pub async fn failure_rule(client: &Client, settings: &Settings, wanted: &str) -> Result<Uuid> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let project = current_project(client, settings).await?;
    let rules: Vec<FailureRule> =
        all(client, "failure_rules", |page| calls::failure_rules(project, page)).await?;
    named(FAILURE_RULE_KIND, wanted, rules.iter().map(|it| (it.id, it.name.as_str())))
}

/// Finds a policy by id, by the end of its id, or by its name if only one policy has that name.
pub async fn policy(client: &Client, settings: &Settings, wanted: &str) -> Result<Uuid> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let project = current_project(client, settings).await?;
    let policies: Vec<Policy> = all(client, "policies", |page| calls::policies(project, page)).await?;
    named(POLICY_KIND, wanted, policies.iter().map(|it| (it.id, it.name.as_str())))
}

/// Finds a webhook by id, by the end of its id, or by its address if only one webhook has that address.
pub async fn webhook(client: &Client, wanted: &str) -> Result<Uuid> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let webhooks: Vec<Webhook> = all(client, "webhooks", calls::webhooks).await?;
    named(WEBHOOK_KIND, wanted, webhooks.iter().map(|it| (it.id, it.url.as_str())))
}

/// Finds a delivery to a webhook by id, or a recent one by the end of its id.
pub async fn delivery(client: &Client, webhook: Uuid, wanted: &str) -> Result<Uuid> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    check_suffix(DELIVERY_KIND, wanted)?;
    recent(client, DELIVERY_KIND, wanted, OLDER_ONES, |page| calls::webhook_deliveries(webhook, page)).await
}

/// Returns the id of the only row of a complete list that has this name, or whose id ends with this text.
fn named<'a>(kind: RecordKind, wanted: &str, rows: impl Iterator<Item = (Uuid, &'a str)>) -> Result<Uuid> {
    let fits = |(id, name): &(Uuid, &str)| *name == wanted || ends_with(id, wanted);
    let ids: Vec<Uuid> = rows.filter(fits).map(|(id, _)| id).collect();
    match ids.as_slice() {
        [id] => Ok(*id),
        [] => Err(not_unique(kind.name, wanted, 0).hint(format!("see `{}`", kind.list))),
        several => Err(not_unique(kind.name, wanted, several.len()).hint(one_of(several))),
    }
}

/// Returns the hint for a text that fits several records.
fn one_of(ids: &[Uuid]) -> String {
    let ids: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    format!("one of {}", ids.join(", "))
}

/// Hint of an error about a record that is not among the recent ones.
const OLDER_ONES: &str = "older ones require the complete id";

/// Returns the id of the only recent row of a list whose id ends with the given text. Without one, the hint of the error
/// says which records are not in the list.
async fn recent<T>(
    client: &Client,
    kind: RecordKind,
    wanted: &str,
    elsewhere: &str,
    call: impl Fn(&Page) -> Call<T>,
) -> Result<Uuid> {
    let mut found: Vec<Uuid> = Vec::new();
    let mut page = Page { limit: Some(MAX_LIMIT), cursor: None };
    for _ in 0..RECENT_PAGES {
        let document = client.value(&call(&page)).await?;
        let rows = document[kind.plural].as_array().map(Vec::as_slice).unwrap_or_default();
        let ids = rows.iter().filter_map(|row| row.get("id")?.as_str()?.parse().ok());
        found.extend(ids.filter(|id| ends_with(id, wanted)));
        page.cursor = next_cursor(&document);
        if page.cursor.is_none() {
            break;
        }
    }
    // A row that moved while the pages were read is on two of them.
    found.sort();
    found.dedup();
    match found.as_slice() {
        [id] => Ok(*id),
        [] => Err(not_unique(&format!("recent {}", kind.name), wanted, 0).hint(elsewhere)),
        several => Err(not_unique(kind.name, wanted, several.len()).hint(one_of(several))),
    }
}

/// Finds a span of a trace by id, by the end of its id, or by its OpenTelemetry span id.
pub async fn span_id(client: &Client, trace: Uuid, wanted: &str) -> Result<Uuid> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let trace = trace.to_string();
    let mut spans = client.call(&calls::trace(&trace)).await?.spans.unwrap_or_default();
    spans.retain(|it| it.otel_span_id.as_deref() == Some(wanted) || ends_with(&it.id, wanted));
    match spans.as_slice() {
        [span] => Ok(span.id),
        several => Err(not_unique("span of the trace", wanted, several.len())
            .hint(format!("see `loupe traces get {trace} --spans flat`"))),
    }
}

fn ends_with(id: &Uuid, wanted: &str) -> bool {
    let wanted = wanted.to_ascii_lowercase();
    wanted.len() >= MIN_ID_SUFFIX_CHARS
        && (id.to_string().ends_with(&wanted) || id.simple().to_string().ends_with(&wanted))
}

fn not_unique(kind: &str, wanted: &str, found: usize) -> CliError {
    match found {
        0 => CliError::new(Exit::NotFound, format!("there is no {kind} `{wanted}`")),
        n => CliError::usage(format!("`{wanted}` matches more than one {kind} ({n})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_suffixes_match_with_or_without_dashes() {
        let id: Uuid = "01980f6e-1111-7000-8000-0000c07b44d1".parse().unwrap();
        for (end, fits) in [
            ("c07b44d1", true),
            ("C07B44D1", true),
            ("4d1", false),
            ("80000000c07b44d1", true),
            ("x44d1", false),
        ] {
            assert_eq!(ends_with(&id, end), fits, "{end}");
        }
    }
}
