"""Installs pinned Node packages into folders below the target directory."""

import shutil
import subprocess
from pathlib import Path

from .wheels import Unavailable


def install(folder: Path, sources: Path):
    """Copies `sources`, a `package.json` with scripts, to `folder` and installs its dependencies once.

    Returns `folder`, or `None` without Node and npm. Raises `Unavailable` if npm fails. A stamp file has a copy of
    the installed `package.json`, so that a changed pin is installed again.
    """
    if not (shutil.which("npm") and shutil.which("node")):
        return None
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources.iterdir():
        shutil.copy(source, folder)
    stamp, wanted = folder / ".installed", (sources / "package.json").read_text()
    if stamp.is_file() and stamp.read_text() == wanted:
        return folder
    npm = ["npm", "ci" if (folder / "package-lock.json").exists() else "install", "--no-fund", "--no-audit"]
    done = subprocess.run(npm, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Unavailable(f"npm could not install the dependencies of {sources}/package.json:\n{done.stdout}")
    stamp.write_text(wanted)
    return folder
