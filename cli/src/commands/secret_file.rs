//! Writes new secrets to files: not readable by other users, not through symbolic links, not over other
//! data.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use api::profile::{create_private, write_private};

use crate::{
    error::{CliError, Result},
    exit::Exit,
};

const KEY_LINE_PREFIX: &str = "LOUPE_API_KEY=";

/// Checks that the secret can be written to the files, before it is created.
pub fn check(secret_file: Option<&Path>, env_file: Option<&Path>) -> Result {
    if let Some(path) = secret_file
        && fs::symlink_metadata(path).is_ok()
    {
        return Err(failed(path, "the file exists already and is not overwritten"));
    }
    if let Some(path) = env_file
        && let Ok(data) = fs::symlink_metadata(path)
        && !data.is_file()
    {
        return Err(failed(path, "the path is a symbolic link or not a regular file"));
    }
    for path in [secret_file, env_file].into_iter().flatten() {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(failed(path, "the folder does not exist"));
        }
    }
    Ok(())
}

/// Writes the secret to the requested file, and returns the file's path.
pub fn store(secret_file: Option<&Path>, env_file: Option<&Path>, secret: &str) -> Result<Option<PathBuf>> {
    if let Some(path) = secret_file {
        let written = create_private(path)
            .and_then(|mut file| writeln!(file, "{secret}").and_then(|()| file.sync_all()));
        written.map_err(|error| failed(path, &api::plain::io_error(&error)))?;
        return Ok(Some(path.to_owned()));
    }
    let Some(path) = env_file else { return Ok(None) };
    check(None, Some(path))?;
    let old = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(path, &api::plain::io_error(&error))),
    };
    write_private(path, with_key(&old, secret).as_bytes())
        .map_err(|error| failed(path, &api::plain::io_error(&error)))?;
    Ok(Some(path.to_owned()))
}

/// Returns the text of an environment file with the key's line replaced, or added at the end.
fn with_key(old: &str, secret: &str) -> String {
    let own = |line: &str| line.trim_start().trim_start_matches("export ").starts_with(KEY_LINE_PREFIX);
    let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
    match lines.iter_mut().find(|line| own(line)) {
        Some(line) => {
            let export = if line.trim_start().starts_with("export ") { "export " } else { "" };
            *line = format!("{export}{KEY_LINE_PREFIX}{secret}");
        }
        None => lines.push(format!("{KEY_LINE_PREFIX}{secret}")),
    }
    lines.join("\n") + "\n"
}

fn failed(path: &Path, why: &str) -> CliError {
    CliError::new(Exit::Unexpected, format!("can't write {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_file_keeps_its_other_lines() {
        assert_eq!(with_key("", "s"), "LOUPE_API_KEY=s\n");
        assert_eq!(with_key("A=1\nLOUPE_API_KEY=old\nB=2\n", "s"), "A=1\nLOUPE_API_KEY=s\nB=2\n");
        assert_eq!(with_key("export LOUPE_API_KEY=old", "s"), "export LOUPE_API_KEY=s\n");
        assert_eq!(with_key("MY_LOUPE_API_KEY=x", "s"), "MY_LOUPE_API_KEY=x\nLOUPE_API_KEY=s\n");
    }

    #[cfg(unix)]
    #[test]
    fn secret_file_is_private_new_and_not_a_link() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        store(Some(&path), None, "s").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(store(Some(&path), None, "t").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "s\n");

        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(check(None, Some(&link)).is_err() && check(Some(&link), None).is_err());
        let env = dir.path().join(".env");
        fs::write(&env, "A=1\n").unwrap();
        store(None, Some(&env), "s").unwrap();
        assert_eq!(fs::metadata(&env).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
