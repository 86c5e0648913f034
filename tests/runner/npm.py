"""Installing pinned Node packages into folders under the target directory."""

import shutil
import subprocess
from pathlib import Path

from .wheels import Unavailable


def install(folder: Path, sources: Path):
    """Copies `sources`, a `package.json` and what runs on it, to `folder` and installs once what it
    names. Returns `folder`, or None without Node and npm. Raises `Unavailable` when npm fails.

    A stamp file remembers what is there, so that another pin installs anew.
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
        raise Unavailable(f"npm could not install what {sources}/package.json names:\n{done.stdout}")
    stamp.write_text(wanted)
    return folder
