//! `loupe deployments approve`, `reject` and `rollback`: decide about versions of prompts.

use api::{
    client::{Client, calls},
    deployment::{DeploymentDecision, DeploymentStatus},
};
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
    let what = consequences(&deployment, baseline.as_ref(), decision, &style);
    prompt::confirm(ctx, &what, &short_id(&deployment)).await
}

/// Returns what a decision changes, with the difference between the templates.
fn consequences(deployment: &Value, baseline: Option<&Value>, decision: Decision, style: &Style) -> String {
    let title = title(deployment);
    let is_served =
        text_member(deployment, "status").parse().is_ok_and(|it: DeploymentStatus| it.is_served());
    let sentence = match decision {
        Decision::Approve => format!("This ships {title}: applications get it at once."),
        Decision::Reject if is_served => {
            format!("This rejects {title}, which is shipped: applications get the version before it at once.")
        }
        Decision::Reject => format!("This rejects {title}. It cannot be shipped any more."),
        Decision::RollBack => {
            format!("This rolls {title} back: applications get the version before it at once.")
        }
    };
    let test = add_test_lines(Sheet::new(style, None), deployment).text();
    let template = text_member(deployment, "template");
    let versions = match baseline {
        // The version that returns may be a later one than the baseline.
        Some(baseline) if is_served => {
            let other = format!("{} (baseline)", super::view::title(baseline));
            let names = DiffNames { old: &title, new: &other };
            unified(names, template, text_member(baseline, "template"), style, None)
        }
        Some(baseline) => {
            let other = super::view::title(baseline);
            let names = DiffNames { old: &other, new: &title };
            unified(names, text_member(baseline, "template"), template, style, None)
        }
        None if decision == Decision::Approve => {
            let names = DiffNames { old: "no version", new: &title };
            unified(names, "", template, style, None)
        }
        None => String::new(),
    };
    format!("{sentence}\n{test}{versions}").trim_end().to_owned()
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
        let text = consequences(&new, Some(&old), Decision::Approve, &style());
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
        let text = consequences(&shipped, Some(&old), Decision::RollBack, &style());
        assert!(text.contains("--- tone v2") && text.contains("+Be kind."), "{text}");
        let text = consequences(&new, None, Decision::Approve, &style());
        assert!(text.contains("--- no version") && text.contains("+Be brief."), "{text}");
        assert!(!consequences(&new, None, Decision::Reject, &style()).contains("+++"));
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
