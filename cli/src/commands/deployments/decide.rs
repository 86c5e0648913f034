//! `loupe deployments approve`, `reject` and `rollback`: decide about versions of prompts.

use api::{
    client::{Client, calls},
    deployment::{DeploymentDecision, DeploymentStatus},
};
use present::diff::TextDiff;
use serde_json::Value;
use uuid::Uuid;

use super::{
    DecisionArgs, deployment_id,
    view::{DEPLOYMENT_VIEW, add_test_lines, sheet, title},
};
use crate::{
    commands::{
        decision::{self, invalid_state, short_id},
        evals::view::text_member,
    },
    ctx::Ctx,
    error::Result,
    output::{
        Style,
        sheet::Sheet,
        text_diff::{DiffNames, unified},
    },
    prompt,
};

/// A decision about a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Ship the version.
    Approve,
    /// Reject the version.
    Reject,
    /// Roll the version back.
    RollBack,
}

impl Decision {
    /// Returns whether the state of a deployment permits the decision. The server judges states that this version
    /// does not know.
    fn is_permitted(self, status: &str) -> bool {
        let Ok(status) = status.parse::<DeploymentStatus>() else { return true };
        match self {
            Self::Approve => status == DeploymentStatus::AbPassed,
            Self::Reject => status.is_rejectable(),
            Self::RollBack => status.is_served(),
        }
    }

    /// Returns which states permit the decision.
    const fn permitted(self) -> &'static str {
        match self {
            Self::Approve => "only a deployment that is ab_passed can be approved",
            Self::Reject => "only one that is ab_running, ab_passed, shipped or regressed can be rejected",
            Self::RollBack => "only one that is shipped or regressed can be rolled back",
        }
    }

    const fn done(self) -> &'static str {
        match self {
            Self::Approve => "Shipped",
            Self::Reject => "Rejected",
            Self::RollBack => "Rolled back",
        }
    }
}

/// Decides about a prompt deployment.
pub async fn run(ctx: &mut Ctx, args: DecisionArgs, decision: Decision) -> Result {
    let client = ctx.session_client("deciding about a prompt deployment")?;
    // Checked before the first request: without a terminal, the confirmation is impossible in any case.
    prompt::require_answer(ctx)?;
    let id = deployment_id(ctx, &client, &args.deployment).await?;
    if !ctx.global.yes && !ctx.global.dry_run {
        confirm(ctx, &client, id, decision).await?;
    }
    let body = DeploymentDecision { note: args.note };
    let call = match decision {
        Decision::Approve => calls::approve_deployment(id, &body),
        Decision::Reject => calls::reject_deployment(id, &body),
        Decision::RollBack => calls::roll_back_deployment(id, &body),
    };
    let Some(deployment) = decision::send(ctx, &client, &call, &calls::deployment(id)).await? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} {} {}", ctx.out.style.glyphs.ok, decision.done(), title(&deployment)));
    ctx.out.whole(&DEPLOYMENT_VIEW, &deployment, sheet)
}

/// Shows what a decision changes and asks for confirmation.
async fn confirm(ctx: &mut Ctx, client: &Client, id: Uuid, decision: Decision) -> Result {
    let deployment = client.value(&calls::deployment(id)).await?;
    let status = text_member(&deployment, "status");
    if !decision.is_permitted(status) {
        return Err(invalid_state("deployment", &deployment, decision.permitted()));
    }
    let baseline = match text_member(&deployment, "baseline_id").parse() {
        Ok(baseline) => Some(client.value(&calls::deployment(baseline)).await?),
        Err(_) => None,
    };
    // The messages of a terminal have no colours.
    let style = Style { colour: false, ..ctx.out.style.clone() };
    let what = consequences(&deployment, baseline.as_ref(), decision, &style, ctx.out.stderr_columns());
    prompt::confirm(ctx, &what, &short_id(&deployment)).await
}

/// Returns what a decision changes: the model, and the difference between the templates.
fn consequences(
    deployment: &Value,
    baseline: Option<&Value>,
    decision: Decision,
    style: &Style,
    columns: Option<usize>,
) -> String {
    let this = title(deployment);
    let is_served =
        text_member(deployment, "status").parse().is_ok_and(|it: DeploymentStatus| it.is_served());
    // A version without a baseline can have replaced another one that was shipped after it was created.
    let returning = match baseline {
        Some(_) => "applications get the version before it at once",
        None => "applications get the version before it at once, or 404 if there is none",
    };
    let sentence = match decision {
        Decision::Approve => format!("This ships {this}: applications get it at once."),
        Decision::Reject if is_served => format!("This rejects {this}, which is shipped: {returning}."),
        Decision::Reject => format!("This rejects {this}. It cannot be shipped any more."),
        Decision::RollBack => format!("This rolls {this} back: {returning}."),
    };
    let other = baseline.map_or_else(|| "no version".to_owned(), title);
    // The version that returns may be a later one than the baseline.
    let baseline_name = if is_served { format!("{other} (baseline)") } else { other };
    let (none, candidate) = (Value::Null, (this.as_str(), deployment));
    let baseline = baseline.map(|it| (baseline_name.as_str(), it));
    let change = match baseline {
        Some(baseline) if is_served => Some((candidate, baseline)),
        Some(baseline) => Some((baseline, candidate)),
        None if decision == Decision::Approve => Some(((baseline_name.as_str(), &none), candidate)),
        None => None,
    };
    let sheet = add_test_lines(Sheet::new(style, columns), deployment);
    let Some(((old_name, old), (new_name, new))) = change else {
        return format!("{sentence}\n{}", sheet.text()).trim_end().to_owned();
    };
    let [model, new_model] = [old, new].map(|it| text_member(it, "model"));
    let named = |model: &str| if model.is_empty() { "none".to_owned() } else { model.to_owned() };
    let model = match (old, model == new_model) {
        (Value::Null, _) => new_model.to_owned(),
        (_, true) => String::new(),
        (_, false) => format!("{} to {}", named(model), named(new_model)),
    };
    let templates = TextDiff::new(text_member(old, "template"), text_member(new, "template"));
    let names = DiffNames { old: old_name, new: new_name };
    let diff = unified(names, &templates, style, columns);
    format!("{sentence}\n{}{diff}", sheet.line("model", model).text()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;

    fn deployment(version: i64, status: &str, template: &str) -> Value {
        json!({ "prompt_name": "tone", "version": version, "status": status, "template": template, "ab": {
            "metric_name": "faithfulness", "effect": 0.04, "p_value": 0.003, "lower_bound": 0.01,
            "baseline": { "n": 100, "mean": 0.8, "stddev": 0.1 }, "candidate": { "n": 101, "mean": 0.84, "stddev": 0.1 },
        } })
    }

    fn style() -> Style {
        Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() }
    }

    #[test]
    fn confirmation_shows_the_test_and_both_templates() {
        let (old, new) = (deployment(1, "shipped", "Be kind."), deployment(2, "ab_passed", "Be brief."));
        let text = consequences(&new, Some(&old), Decision::Approve, &style(), Some(80));
        for part in [
            "ships tone v2",
            "mean 0.800",
            "mean 0.840",
            "+0.040, p 0.003",
            "--- tone v1",
            "-Be kind.",
            "+Be brief.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let shipped = deployment(2, "shipped", "Be brief.");
        let text = consequences(&shipped, Some(&old), Decision::RollBack, &style(), Some(80));
        assert!(text.contains("--- tone v2") && text.contains("+Be kind."), "{text}");
        let text = consequences(&new, None, Decision::Approve, &style(), Some(80));
        assert!(text.contains("--- no version") && text.contains("+Be brief."), "{text}");
        assert!(!consequences(&new, None, Decision::Reject, &style(), None).contains("+++"));
        for decision in [Decision::Reject, Decision::RollBack] {
            let text = consequences(&shipped, None, decision, &style(), Some(80));
            assert!(text.contains("or 404 if there is none"), "{text}");
        }
    }

    #[test]
    fn confirmation_names_a_changed_model() {
        let with_model = |mut row: Value, model: Value| {
            row["model"] = model;
            row
        };
        let old = with_model(deployment(1, "superseded", "Be kind."), json!("gpt-4o"));
        let new = |status: &str, model: Value| with_model(deployment(2, status, "Be kind."), model);
        for (deployment, baseline, decision, model) in [
            (
                new("ab_passed", json!("gpt-4o-mini")),
                Some(&old),
                Decision::Approve,
                Some("gpt-4o to gpt-4o-mini"),
            ),
            (new("ab_passed", Value::Null), Some(&old), Decision::Approve, Some("gpt-4o to none")),
            (
                new("shipped", json!("gpt-4o-mini")),
                Some(&old),
                Decision::RollBack,
                Some("gpt-4o-mini to gpt-4o"),
            ),
            (new("ab_passed", json!("gpt-4o-mini")), None, Decision::Approve, Some("gpt-4o-mini")),
            (new("ab_passed", json!("gpt-4o")), Some(&old), Decision::Approve, None),
            (new("ab_passed", Value::Null), None, Decision::Approve, None),
        ] {
            let text = consequences(&deployment, baseline, decision, &style(), Some(80));
            let shown = text.lines().find_map(|line| line.strip_prefix("  model       "));
            assert_eq!(shown, model, "{text}");
        }
    }

    #[test]
    fn long_changed_line_keeps_its_sign_on_each_row() {
        let new = deployment(2, "ab_passed", &"+Be brief. ".repeat(20));
        let text = consequences(&new, None, Decision::Approve, &style(), Some(40));
        let (_, template) = text.split_once("+++ tone v2\n").unwrap();
        assert!(template.lines().count() > 5 && template.lines().all(|it| it.starts_with('+')), "{text}");
        assert!(text.lines().skip(1).all(|it| present::text::width(it) <= 40), "{text}");
    }

    #[test]
    fn decisions_follow_the_states() {
        for (status, permitted) in [
            ("ab_running", [false, true, false]),
            ("ab_passed", [true, true, false]),
            ("ab_failed", [false; 3]),
            ("shipped", [false, true, true]),
            ("regressed", [false, true, true]),
            ("rejected", [false; 3]),
            ("rolled_back", [false; 3]),
            ("superseded", [false; 3]),
            ("a_later_one", [true; 3]),
        ] {
            let all =
                [Decision::Approve, Decision::Reject, Decision::RollBack].map(|it| it.is_permitted(status));
            assert_eq!(all, permitted, "{status}");
        }
    }
}
