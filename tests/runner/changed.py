"""Finds the crates that differ from a commit."""

import subprocess
from pathlib import Path


def crates(root: Path, base: str) -> list[str]:
    """Returns the names of the crates with new files or files that differ from `base`, sorted.

    Raises `CalledProcessError` if `base` is not a commit.
    """
    tracked = _lines(root, "git", "diff", "--name-only", base)
    untracked = _lines(root, "git", "ls-files", "--others", "--exclude-standard")
    owners = {owner(Path(file), lambda folder: (root / folder / "Cargo.toml").is_file()) for file in tracked + untracked}
    return sorted(folder.name for folder in owners if folder is not None)


def owner(file: Path, is_crate) -> Path | None:
    """Returns the folder of the crate that contains a file; `None` for a file outside all crates.

    >>> has_manifest = lambda folder: str(folder) in (".", "server", "crates/api")
    >>> [str(owner(Path(file), has_manifest)) for file in ("server/src/app.rs", "crates/api/src/a/b.rs", "docs/ci.md")]
    ['server', 'crates/api', 'None']
    """
    folders = [folder for folder in file.parents if folder != Path(".")]
    return next(filter(is_crate, folders), None)


def _lines(root: Path, *command: str) -> list[str]:
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
