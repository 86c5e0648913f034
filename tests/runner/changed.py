"""Which crates differ from a commit, and the checks that a contributor runs on them after each edit."""

import subprocess
from pathlib import Path


def crates(root: Path, base: str) -> list[str]:
    """The names of the crates with files that differ from `base`, or that are new, in the order of their names.

    Raises CalledProcessError when `base` is no commit.
    """
    tracked = _lines(root, "git", "diff", "--name-only", base)
    untracked = _lines(root, "git", "ls-files", "--others", "--exclude-standard")
    owners = {owner(Path(file), lambda folder: (root / folder / "Cargo.toml").is_file()) for file in tracked + untracked}
    return sorted(folder.name for folder in owners if folder is not None)


def owner(file: Path, is_crate) -> Path | None:
    """The folder of the crate that a file belongs to; None for a file of the workspace itself.

    >>> has_manifest = lambda folder: str(folder) in (".", "server", "crates/api")
    >>> [str(owner(Path(file), has_manifest)) for file in ("server/src/app.rs", "crates/api/src/a/b.rs", "docs/ci.md")]
    ['server', 'crates/api', 'None']
    """
    folders = [folder for folder in file.parents if folder != Path(".")]
    return next(filter(is_crate, folders), None)


def _lines(root: Path, *command: str) -> list[str]:
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
