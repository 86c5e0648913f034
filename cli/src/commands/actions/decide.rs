//! `loupe actions approve` and `reject`: decide about control actions that wait for approval.

use api::client::calls;
use serde_json::Value;

use super::{
    action_id,
    view::{ACTION_VIEW, executed_type, reason, sheet},
};
use crate::{
    commands::{
        action_config::add_lines,
        decision::{self, invalid_state, short_id},
        evals::view::text_member,
    },
    ctx::Ctx,
    error::Result,
    output::{Style, sheet::Sheet},
    prompt,
};

/// Approves or rejects a control action.
pub async fn run(ctx: &mut Ctx, wanted: &str, approve: bool) -> Result {
    ctx.out.check(&ACTION_VIEW)?;
    let client = ctx.session_client("deciding about a control action")?;
    // Checked before the first request: without a terminal, the confirmation is impossible in any case.
    prompt::require_answer(ctx)?;
    let id = action_id(ctx, &client, wanted).await?;
    if !ctx.global.yes && !ctx.global.dry_run {
        let action = client.value(&calls::control_action(id)).await?;
        if text_member(&action, "status") != "pending_approval" {
            let permitted = "only an action that is pending_approval can be decided";
            return Err(invalid_state("action", &action, permitted));
        }
        // The messages of a terminal have no colours.
        let style = Style { colour: false, ..ctx.out.style.clone() };
        let what = consequences(&action, approve, &style, ctx.out.stderr_columns());
        prompt::confirm(ctx, &what, &short_id(&action)).await?;
    }
    let call = if approve { calls::approve_action(id) } else { calls::reject_action(id) };
    let Some(action) = decision::send(ctx, &client, &call, &calls::control_action(id)).await? else {
        return Ok(());
    };
    let verb = if approve { "Approved" } else { "Rejected" };
    ctx.out.note(&format!("{} {verb} the action {}", ctx.out.style.glyphs.ok, short_id(&action)));
    if approve {
        ctx.out.note(&format!("compare the outputs: loupe actions diff {id} --wait"));
    }
    ctx.out.whole(&ACTION_VIEW, &action, sheet)
}

/// Returns what a decision changes.
fn consequences(action: &Value, approve: bool, style: &Style, columns: Option<usize>) -> String {
    let executed = executed_type(action);
    let (id, trace) = (short_id(action), text_member(action, "trace_id"));
    let by = match text_member(action.get("action_config").unwrap_or(&Value::Null), "callback_url") {
        "" => "with the tenant's key, which costs money",
        _ => "through the callback of the policy",
    };
    let sentence = match approve {
        true => format!(
            "This executes the {executed} {id} on the trace {trace}: its request is sent to the provider again, {by}."
        ),
        false => format!("This rejects the {executed} {id} on the trace {trace}. It is not executed."),
    };
    let sheet = add_lines(Sheet::new(style, columns), action).line("why", reason(action));
    format!("{sentence}\n{}", sheet.text()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_line_of_a_new_prompt_is_indented() {
        let style = Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() };
        let config = json!({ "prompt_template": "One.\nThis rejects the retry.\nTwo." });
        let action = json!({ "id": "5e1f09aa", "action_type": "prompt_modification", "trace_id": "t",
            "action_config": config, "metadata": { "trigger": "failure" } });
        for approve in [true, false] {
            let text = consequences(&action, approve, &style, Some(60));
            assert!(text.lines().skip(1).all(|line| line.starts_with("  ")), "{text}");
            assert!(
                text.contains("  prompt      One.\n") && text.contains("  why         failure"),
                "{text}"
            );
        }
    }
}
