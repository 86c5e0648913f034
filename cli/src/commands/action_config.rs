//! How a control action changes a request: its flags and its display.

use api::control::{ActionConfig, ActionType};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use serde_json::Value;

use crate::{
    commands::{evals::view::text_member, flag_value},
    error::Result,
    output::sheet::Sheet,
};

/// The configuration of an action, as flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "How the request is changed")]
pub struct ActionConfigArgs {
    /// The model; for fallback_model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Text that is appended to the system message; for prompt_modification
    #[arg(long, value_name = "TEXT")]
    system_suffix: Option<String>,
    /// File with the new system message, or - for stdin; {{system}} in it stands for the recorded
    /// one; for prompt_modification
    #[arg(long, value_name = "FILE|-")]
    prompt_template: Option<String>,
    /// The temperature, 0 to 2 (default: the recorded one)
    #[arg(long, value_name = "N", value_parser = temperature, allow_negative_numbers = true)]
    temperature: Option<Temperature>,
}

/// Value of `--temperature`; `None` is the recorded temperature.
#[derive(Clone, Copy, Debug)]
struct Temperature(Option<f64>);

fn temperature(text: &str) -> std::result::Result<Temperature, String> {
    match (text, text.parse::<f64>()) {
        ("none", _) => Ok(Temperature(None)),
        (_, Ok(number)) if number.is_finite() => Ok(Temperature(Some(number))),
        _ => Err("a number such as 0.2".to_owned()),
    }
}

/// Returns the parser of an action type that can be requested.
pub fn requestable_type() -> impl TypedValueParser<Value = ActionType> {
    PossibleValuesParser::new(ActionType::REQUESTABLE_TYPES.map(ActionType::as_str))
        .try_map(|word| word.parse::<ActionType>())
}

impl ActionConfigArgs {
    /// Returns whether any flag is set.
    pub fn is_given(&self) -> bool {
        let Self { model, system_suffix, prompt_template, temperature } = self;
        temperature.is_some() || [model, system_suffix, prompt_template].iter().any(|it| it.is_some())
    }

    /// Applies the flags to an existing configuration, or to an empty one. `none` removes a part of an existing
    /// configuration; in a new one it is an ordinary value.
    pub fn apply_to(&self, old: Option<ActionConfig>) -> Result<ActionConfig> {
        let changes = old.is_some();
        let mut config = old.unwrap_or_default();
        let apply = |new: &Option<String>, old: &mut Option<String>| match new.as_deref() {
            Some("none") if changes => *old = None,
            Some(new) => *old = Some(new.to_owned()),
            None => {}
        };
        apply(&self.model, &mut config.model);
        apply(&self.system_suffix, &mut config.system_suffix);
        match self.prompt_template.as_deref() {
            Some("none") if changes => config.prompt_template = None,
            Some(file) => config.prompt_template = Some(template("--prompt-template", file)?),
            None => {}
        }
        if let Some(Temperature(temperature)) = self.temperature {
            config.temperature = temperature;
        }
        Ok(config)
    }
}

/// Reads the template of a prompt from a file, or from stdin for `-`, without a line break at its end.
pub fn template(flag: &str, file: &str) -> Result<String> {
    Ok(flag_value::without_line_break(&flag_value::text(flag, file)?).to_owned())
}

/// Returns the member `action_config` of a policy or an action.
fn config(row: &Value) -> &Value {
    row.get("action_config").unwrap_or(&Value::Null)
}

/// Formats a configuration in one line, such as `gpt-4o-mini, temperature 0.2`; empty if it changes nothing.
pub fn summary(row: &Value) -> String {
    let config = config(row);
    let named = |label: &str, name: &str| match text_member(config, name) {
        "" => String::new(),
        text => format!("{label}{text}"),
    };
    let temperature = config.get("temperature").and_then(Value::as_f64);
    let parts = [
        named("", "model"),
        named("+ ", "system_suffix"),
        named("prompt: ", "prompt_template"),
        temperature.map(|it| format!("temperature {it}")).unwrap_or_default(),
        named("by ", "callback_url"),
    ];
    parts.iter().filter(|it| !it.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Adds the configuration to a sheet, one line for each part.
pub fn add_lines(sheet: Sheet, row: &Value) -> Sheet {
    let config = config(row);
    let temperature = config.get("temperature").and_then(Value::as_f64);
    sheet
        .line("model", text_member(config, "model"))
        .line("suffix", text_member(config, "system_suffix"))
        .line("prompt", text_member(config, "prompt_template"))
        .line("temperature", temperature.map(|it| it.to_string()).unwrap_or_default())
        .line("callback", text_member(config, "callback_url"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn args() -> ActionConfigArgs {
        ActionConfigArgs { model: None, system_suffix: None, prompt_template: None, temperature: None }
    }

    #[test]
    fn none_removes_a_part_of_an_existing_configuration() {
        let old = ActionConfig {
            model: Some("gpt-4o".to_owned()),
            temperature: Some(0.5),
            callback_url: Some("https://example.com".to_owned()),
            ..ActionConfig::default()
        };
        let flags = ActionConfigArgs {
            model: Some("none".to_owned()),
            temperature: Some(Temperature(None)),
            system_suffix: Some("Be brief.".to_owned()),
            ..args()
        };
        let changed = flags.apply_to(Some(old.clone())).unwrap();
        assert_eq!((changed.model, changed.temperature), (None, None));
        assert_eq!(changed.system_suffix.as_deref(), Some("Be brief."));
        assert_eq!(changed.callback_url, old.callback_url);
        assert_eq!(flags.apply_to(None).unwrap().model.as_deref(), Some("none"));
        assert!(!args().is_given() && flags.is_given());
    }

    #[test]
    fn summary_names_every_part() {
        let row = json!({ "action_config": { "model": "gpt-4o-mini", "temperature": 0.2 } });
        assert_eq!(summary(&row), "gpt-4o-mini, temperature 0.2");
        assert_eq!(summary(&json!({})), "");
    }
}
