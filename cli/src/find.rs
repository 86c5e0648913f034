//! Resolves names and the last characters of ids to ids.

use api::{
    client::{
        Call, Client,
        calls::{self, Page},
    },
    eval::EvaluationFilter,
    eval_rule::EvalRule,
    filter::Filter,
    key::ApiKey,
    member::Member,
    page::MAX_LIMIT,
    project::Project,
};
use uuid::Uuid;

use crate::{
    config::{Settings, Sourced},
    error::{CliError, Result},
    exit::Exit,
    pages::{all, next_cursor},
};

/// Maximum number of pages of a list that are searched for the end of an id.
const RECENT_PAGES: usize = 10;
/// Minimum number of characters at the end of an id that identify a row.
const SHORTEST: usize = 4;
/// Minimum length of a prefix that identifies an API key: `lp_` and four characters.
const SHORTEST_PREFIX: usize = 7;

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
            error.detail.push(format!("the project is the one of {source}; -p PROJECT chooses another"));
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
        _ => Err(missing("project", wanted, matching.len()).hint(hint)),
    }
}

/// Finds an API key by id, by the end of its id, by prefix or by name.
pub async fn api_key(client: &Client, wanted: &str) -> Result<ApiKey> {
    let keys = api_keys(client).await?;
    let prefixed = |key: &ApiKey| wanted.len() >= SHORTEST_PREFIX && key.prefix.starts_with(wanted);
    let fits = |key: &ApiKey| {
        key.id.to_string() == wanted || key.name == wanted || prefixed(key) || ends_with(&key.id, wanted)
    };
    let mut found: Vec<ApiKey> = keys.into_iter().filter(fits).collect();
    match (found.pop(), found.len()) {
        (Some(key), 0) => Ok(key),
        (None, _) => Err(missing("API key", wanted, 0).hint("see `loupe keys list`")),
        (_, others) => Err(missing("API key", wanted, others + 1)
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
        (None, _) => Err(missing("member", wanted, 0).hint("see `loupe members list`")),
        (_, others) => Err(missing("member", wanted, others + 1).hint("see `loupe members list`")),
    }
}

/// Returns a trace id in a form that the server accepts: a complete id or an OpenTelemetry trace id (32
/// hexadecimal digits) unchanged, otherwise the id of the only recent trace whose id ends with the text.
pub async fn trace_id(client: &Client, settings: &Settings, wanted: &str) -> Result<String> {
    let digits = wanted.len() == 32 && wanted.bytes().all(|byte| byte.is_ascii_hexdigit());
    if digits || wanted.parse::<Uuid>().is_ok() {
        return Ok(wanted.to_owned());
    }
    let hint = "ids are in the last column of `loupe traces list`";
    let project = recent_project(client, settings, "a trace", wanted, hint).await?;
    let call = |page: &Page| calls::traces(&Filter::default(), project, page);
    Ok(recent(client, "trace", "traces", wanted, call).await?.to_string())
}

/// Finds a trace like [`trace_id`] and returns its id as a UUID; an OpenTelemetry trace id is the same 128
/// bits.
pub async fn trace(client: &Client, settings: &Settings, wanted: &str) -> Result<Uuid> {
    let id = trace_id(client, settings, wanted).await?;
    id.parse().map_err(|_| CliError::usage(format!("`{id}` is not a trace id")))
}

/// Finds an evaluation by id, or a recent one by the end of its id.
pub async fn evaluation(client: &Client, settings: &Settings, wanted: &str) -> Result<Uuid> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let hint = "ids are in the last column of `loupe evals list`";
    let project_id = recent_project(client, settings, "an evaluation", wanted, hint).await?;
    let filter = EvaluationFilter { project_id, ..EvaluationFilter::default() };
    recent(client, "evaluation", "evaluations", wanted, |page| calls::evaluations(&filter, page)).await
}

/// Finds an eval rule by id, by the end of its id, or by its metric if only one rule has that metric.
pub async fn eval_rule(client: &Client, settings: &Settings, wanted: &str) -> Result<Uuid> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let project = current_project(client, settings).await?;
    let mut rules: Vec<EvalRule> = all(client, "eval_rules", |page| calls::eval_rules(project, page)).await?;
    rules.retain(|it| it.metric_name == wanted || ends_with(&it.id, wanted));
    match rules.as_slice() {
        [rule] => Ok(rule.id),
        [] => Err(missing("eval rule", wanted, 0).hint("see `loupe rules list`")),
        several => {
            let ids: Vec<String> = several.iter().map(|it| it.id.to_string()).collect();
            Err(missing("eval rule", wanted, ids.len()).hint(format!("one of {}", ids.join(", "))))
        }
    }
}

/// Checks that a text can be the end of an id, and returns the project in which to search for it.
async fn recent_project(
    client: &Client,
    settings: &Settings,
    kind: &str,
    wanted: &str,
    hint: &str,
) -> Result<Option<Uuid>> {
    let plausible = |c: char| c.is_ascii_hexdigit() || c == '-';
    if wanted.len() < SHORTEST || !wanted.chars().all(plausible) {
        let message = format!("`{wanted}` is not {kind} id, nor the last characters of one");
        return Err(CliError::usage(message).hint(hint));
    }
    current_project(client, settings).await
}

/// Returns the id of the only recent row of a list whose id ends with the given text.
async fn recent<T>(
    client: &Client,
    kind: &str,
    plural: &str,
    wanted: &str,
    call: impl Fn(&Page) -> Call<T>,
) -> Result<Uuid> {
    let mut found: Vec<Uuid> = Vec::new();
    let mut page = Page { limit: Some(MAX_LIMIT), cursor: None };
    for _ in 0..RECENT_PAGES {
        let document = client.value(&call(&page)).await?;
        let rows = document[plural].as_array().map(Vec::as_slice).unwrap_or_default();
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
        [] => Err(missing(&format!("recent {kind}"), wanted, 0).hint("older ones need their whole id")),
        several => {
            let ids: Vec<String> = several.iter().map(Uuid::to_string).collect();
            Err(missing(kind, wanted, ids.len()).hint(format!("one of {}", ids.join(", "))))
        }
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
        several => Err(missing("span of the trace", wanted, several.len())
            .hint(format!("see `loupe traces get {trace} --spans flat`"))),
    }
}

fn ends_with(id: &Uuid, wanted: &str) -> bool {
    let wanted = wanted.to_ascii_lowercase();
    wanted.len() >= SHORTEST
        && (id.to_string().ends_with(&wanted) || id.simple().to_string().ends_with(&wanted))
}

fn missing(kind: &str, wanted: &str, found: usize) -> CliError {
    match found {
        0 => CliError::new(Exit::NotFound, format!("there is no {kind} `{wanted}`")),
        n => CliError::usage(format!("`{wanted}` matches more than one {kind} ({n})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_ids_are_taken_with_or_without_dashes() {
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
