//! Adds the demo's context to the profile of the CLI, and removes it when the demo ends.

use std::{
    fs,
    path::{Path, PathBuf},
};

use api::profile::{self, CONFIG_FILE, CREDENTIALS_FILE, Config, Credentials, ProfileError, write_private};

/// Name of the context. If the user has a context of this name, the demo takes the next free one.
const CONTEXT_NAME: &str = "demo";

/// A context of the profile; dropping the value removes it.
#[derive(Debug)]
pub struct DemoContext {
    folder: PathBuf,
    /// The name of the context.
    pub name: String,
    url: String,
    /// Whether the context became the current one, because there was none.
    pub is_current: bool,
    /// Whether the folder was created for the context.
    made_folder: bool,
    /// The content of each file before and after the context was added; empty if the context replaced one
    /// that another demo left behind.
    files: Vec<(PathBuf, Option<String>, String)>,
}

impl DemoContext {
    /// Writes the context.
    ///
    /// # Errors
    ///
    /// Fails when the profile cannot be read or written.
    pub fn write(folder: &Path, url: &str, key: &str, session: &str) -> Result<Self, ProfileError> {
        let before = Config::load(folder)?;
        let name = free_name(&before);
        let text = |file: &str| fs::read_to_string(folder.join(file)).ok();
        let (config, credentials) = (text(CONFIG_FILE), text(CREDENTIALS_FILE));
        let made_folder = !folder.exists();
        profile::write_context(folder, &name, url, Some(key), Some(session))?;
        let mut after = Config::load(folder)?;
        if let Some(context) = after.contexts.get_mut(&name) {
            context.temporary = true;
        }
        after.save(folder)?;
        // The context that another demo left behind must not come back.
        let is_new = !before.contexts.contains_key(&name);
        let files = [(CONFIG_FILE, config), (CREDENTIALS_FILE, credentials)].into_iter().filter(|_| is_new);
        let files = files.map(|(file, was)| (folder.join(file), was, text(file).unwrap_or_default()));
        Ok(Self {
            folder: folder.to_owned(),
            is_current: after.current.as_deref() == Some(name.as_str()),
            name,
            url: url.to_owned(),
            made_folder,
            files: files.collect(),
        })
    }

    /// Removes the context. Unchanged files get their previous content byte by byte. In changed files only
    /// the context is removed, if it is still the demo's.
    pub fn remove(&self) {
        // A context that cannot be removed refers to a stopped server, and the next demo replaces it.
        _ = self.try_remove();
    }

    fn try_remove(&self) -> Result<(), ProfileError> {
        let is_ours = |context: &profile::Context| {
            context.temporary && context.url.as_deref() == Some(self.url.as_str())
        };
        let mut config = Config::load(&self.folder)?;
        if !config.contexts.get(&self.name).is_some_and(is_ours) {
            return Ok(());
        }
        let unchanged = |file: &(PathBuf, Option<String>, String)| {
            fs::read_to_string(&file.0).is_ok_and(|it| it == file.2)
        };
        if !self.files.is_empty() && self.files.iter().all(unchanged) {
            for (path, was, _) in &self.files {
                let failed = |source| ProfileError::Io { path: path.clone(), source };
                match was {
                    Some(text) => write_private(path, text.as_bytes()).map_err(failed)?,
                    None => fs::remove_file(path).map_err(failed)?,
                }
            }
            if self.made_folder {
                // The folder may contain other files by now.
                _ = fs::remove_dir(&self.folder);
            }
            return Ok(());
        }
        config.contexts.remove(&self.name);
        if config.current.as_deref() == Some(self.name.as_str()) {
            config.current = None;
        }
        let mut credentials = Credentials::load(&self.folder)?;
        credentials.contexts.remove(&self.name);
        credentials.save(&self.folder)?;
        config.save(&self.folder)
    }
}

impl Drop for DemoContext {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns `demo`, or `demo-2` and so on if the user has a context of that name. A context that another
/// demo left behind is replaced.
fn free_name(config: &Config) -> String {
    let is_free = |name: &String| config.contexts.get(name).is_none_or(|it| it.temporary);
    let names =
        std::iter::once(CONTEXT_NAME.to_owned()).chain((2..).map(|it| format!("{CONTEXT_NAME}-{it}")));
    names.into_iter().find(is_free).unwrap_or_else(|| CONTEXT_NAME.to_owned())
}
