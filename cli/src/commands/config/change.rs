//! `loupe config set`, `unset` and `edit`: change `config.toml` and keep it valid.

use std::{fs, path::Path, process::Command};

use api::{
    client::{Client, Options},
    filter::Filter,
    profile::{self, Config},
};
use clap::{Args, ValueEnum};
use toml::{Table, Value};

use super::folder;
use crate::{
    ctx::Ctx,
    env::now,
    error::{CliError, Result},
    exit::Exit,
    format::Format,
    prompt,
};

/// Names that can be set, for the hint about an unknown name.
const SETTABLE_KEYS: &str = "current, output.format, output.time, filters.NAME, contexts.NAME.url, \
                    contexts.NAME.project, contexts.NAME.protected, contexts.NAME.read_only, keys.ACTION";

/// Arguments of `config set`.
#[derive(Debug, Args)]
pub struct ConfigSetArgs {
    /// Name of the value
    key: String,
    /// The value
    #[arg(allow_hyphen_values = true)]
    value: String,
}

/// Sets a value.
pub fn set(ctx: &mut Ctx, args: &ConfigSetArgs) -> Result {
    let value = parse_value(ctx, &args.key, &args.value)?;
    if !ctx.changes_files(&format!("set {} to {}", args.key, args.value)) {
        return Ok(());
    }
    let mut table = table(&ctx.settings.config)?;
    insert(&mut table, &path(&args.key), value)
        .ok_or_else(|| CliError::usage(format!("`{}` is not a value but a section", args.key)))?;
    save(ctx, table)?;
    ctx.out.note(&format!("set {}", args.key));
    Ok(())
}

/// Removes a value. An unset value is not an error.
pub fn unset(ctx: &mut Ctx, key: &str) -> Result {
    let mut table = table(&ctx.settings.config)?;
    if remove(&mut table, &path(key)).is_none() {
        ctx.out.note(&format!("{key} is not set in {}", profile::CONFIG_FILE));
        return Ok(());
    }
    if !ctx.changes_files(&format!("remove {key}")) {
        return Ok(());
    }
    save(ctx, table)?;
    ctx.out.note(&format!("removed {key}"));
    Ok(())
}

/// Opens the file in an editor, and stores the result if it is valid.
pub async fn edit(ctx: &mut Ctx) -> Result {
    prompt::require_terminal(ctx, "a value to `loupe config set`")?;
    let dir = folder(ctx)?;
    let path = dir.join(profile::CONFIG_FILE);
    if !ctx.changes_files(&format!("open {}", path.display())) {
        return Ok(());
    }
    let draft = dir.join("config.edit.toml");
    let failed = |error: std::io::Error| {
        let why = api::plain::io_error(&error);
        CliError::new(Exit::Unexpected, format!("{}: {why}", draft.display()))
    };
    if !path.exists() {
        Config::default().save(&dir)?;
    }
    // An invalid draft of the last run is edited further, unless the file has changed since.
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if changed(&draft) < changed(&path) {
        fs::copy(&path, &draft).map_err(failed)?;
    }
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| ctx.env.var(name)).unwrap_or("vi");
    // The variable may contain arguments, as in `code --wait`.
    let mut words = editor.split_whitespace();
    let ended = Command::new(words.next().unwrap_or("vi")).args(words).arg(&draft).status();
    if !ended.is_ok_and(|status| status.success()) {
        fs::remove_file(&draft).map_err(failed)?;
        let message = format!("the editor `{editor}` failed; nothing was stored");
        return Err(CliError::new(Exit::Unexpected, message).hint("set VISUAL or EDITOR"));
    }
    let text = fs::read_to_string(&draft).map_err(failed)?;
    if let Err(error) = toml::from_str::<Config>(&text) {
        let line = error.span().map_or(1, |it| text[..it.start.min(text.len())].matches('\n').count() + 1);
        let why = format!("line {line} is not valid TOML, or holds a value of the wrong type");
        return Err(CliError::usage(format!("{}: {why}", draft.display()))
            .hint("nothing was stored; `loupe config edit` opens your text again"));
    }
    profile::write_private(&path, text.as_bytes()).and_then(|()| fs::remove_file(&draft)).map_err(failed)?;
    ctx.out.note(&format!("stored {}", path.display()));
    Ok(())
}

/// Parses and validates the value of a name.
fn parse_value(ctx: &Ctx, key: &str, text: &str) -> Result<Value> {
    let wrong = |why: String| CliError::usage(format!("{key}: {why}"));
    let one_of = |words: &[&str]| {
        if words.contains(&text) {
            Ok(())
        } else {
            Err(wrong(format!("`{text}` is not one of {}", words.join(", "))))
        }
    };
    match path(key).as_slice() {
        ["current"] if ctx.settings.config.contexts.contains_key(text) => {}
        ["current"] => return Err(wrong(format!("there is no context `{text}`"))),
        ["output", "format"] => {
            let words: Vec<_> = Format::value_variants().iter().map(|it| it.word()).collect();
            one_of(&words)?;
        }
        ["output", "time"] => one_of(&["local", "utc"])?,
        ["filters", _] => drop(Filter::parse(text, &ctx.settings.filters, &now())?),
        ["keys", action] => {
            let keys = [((*action).to_owned(), vec![text.to_owned()])];
            tui::print_keymap(&keys.into_iter().collect()).map_err(|error| wrong(error.to_string()))?;
        }
        ["contexts", _, "url"] => drop(Client::new(Options::new(text))?),
        ["contexts", _, "project"] => {}
        ["contexts", _, "protected" | "read_only"] => {
            let value = text.parse().map_err(|_| wrong(format!("`{text}` is neither true nor false")))?;
            return Ok(Value::Boolean(value));
        }
        _ => {
            return Err(CliError::usage(format!("`{key}` can't be set"))
                .hint(format!("names that can be set: {SETTABLE_KEYS}")));
        }
    }
    Ok(Value::String(text.to_owned()))
}

/// Splits a name into the path of its value. Names of filters and of console actions may contain dots.
fn path(key: &str) -> Vec<&str> {
    match key.split_once('.') {
        Some((section @ ("filters" | "keys"), name)) => vec![section, name],
        _ => key.split('.').collect(),
    }
}

fn table(config: &Config) -> Result<Table> {
    Table::try_from(config)
        .map_err(|_| CliError::new(Exit::Unexpected, "the settings can't be converted to TOML"))
}

fn save(ctx: &Ctx, table: Table) -> Result {
    let config: Config =
        table.try_into().map_err(|_: toml::de::Error| CliError::usage("a value of the wrong type"))?;
    Ok(config.save(ctx.settings.profile_dir()?)?)
}

/// Inserts a value at a path and creates missing tables. Returns `None` if a value on the path is not a
/// table.
fn insert(table: &mut Table, path: &[&str], value: Value) -> Option<()> {
    let (name, rest) = path.split_first()?;
    if rest.is_empty() {
        table.insert((*name).to_owned(), value);
        return Some(());
    }
    let below = table.entry((*name).to_owned()).or_insert_with(|| Value::Table(Table::new()));
    insert(below.as_table_mut()?, rest, value)
}

/// Removes the value at a path, and the tables that become empty.
fn remove(table: &mut Table, path: &[&str]) -> Option<Value> {
    let (name, rest) = path.split_first()?;
    if rest.is_empty() {
        return table.remove(*name);
    }
    let below = table.get_mut(*name)?.as_table_mut()?;
    let removed = remove(below, rest)?;
    if below.is_empty() {
        table.remove(*name);
    }
    Some(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_values_create_and_remove_their_tables() {
        let mut table = Table::new();
        insert(&mut table, &["contexts", "a", "protected"], Value::Boolean(true)).unwrap();
        insert(&mut table, &["current"], "a".into()).unwrap();
        assert!(insert(&mut table, &["current", "x"], "b".into()).is_none());
        assert_eq!(table["contexts"]["a"]["protected"].as_bool(), Some(true));
        assert!(remove(&mut table, &["contexts", "b", "protected"]).is_none());
        assert!(remove(&mut table, &["contexts", "a", "protected"]).is_some());
        assert_eq!(table.to_string(), "current = \"a\"\n");
    }
}
