//! The context of the demo in the profile of the command line, which goes when the demo ends.

use std::{
    fs,
    path::{Path, PathBuf},
};

use api::profile::{self, CONFIG_FILE, CREDENTIALS_FILE, Config, Credentials, ProfileError, write_private};

/// Name of the context; one that the user made keeps it, and the demo takes the next free one.
const NAME: &str = "demo";

/// A context that is removed with this value.
#[derive(Debug)]
pub struct DemoContext {
    folder: PathBuf,
    /// Its name.
    pub name: String,
    url: String,
    /// It is the current one, as there was none.
    pub is_current: bool,
    /// Whether the folder was made for it.
    made_folder: bool,
    /// Each file as it was, and as the context was written into it; empty where the context took the place
    /// of one that another demo left behind.
    files: Vec<(PathBuf, Option<String>, String)>,
}

impl DemoContext {
    /// Writes the context.
    ///
    /// # Errors
    /// When the profile can't be read or written.
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
        // What another demo left behind is not to come back.
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

    /// Removes the context. Files that nobody changed since become what they were, byte by byte; in others
    /// only the context goes, if it is still the demo's.
    pub fn remove(&self) {
        // What can't be removed names a server that is gone, and the next demo takes its place.
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
                // Something else may be in it by now.
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

/// `demo`, or `demo-2` and so on where the user has a context of that name. A context that another demo
/// left behind is replaced.
fn free_name(config: &Config) -> String {
    let is_free = |name: &String| config.contexts.get(name).is_none_or(|it| it.temporary);
    let names = std::iter::once(NAME.to_owned()).chain((2..).map(|it| format!("{NAME}-{it}")));
    names.into_iter().find(is_free).unwrap_or_else(|| NAME.to_owned())
}
