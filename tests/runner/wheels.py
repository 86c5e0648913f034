"""Installs pinned wheels into folders below the target directory, never into the user's or the system's Python."""

import subprocess
import sys
from pathlib import Path


class Unavailable(Exception):
    """A required tool is missing; the message has the remedy."""


def install(folder: Path, *requirements: str, dependencies: bool = False) -> Path:
    """Installs pinned `requirements` (`name==version`) into `folder` once and returns `folder`.

    A stamp file lists the installed requirements, so that a changed pin is installed again.
    Raises `Unavailable` without pip, or if pip fails.
    """
    stamp = folder / ".requirements"
    wanted = "\n".join(requirements)
    if stamp.is_file() and stamp.read_text() == wanted:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--quiet", "--disable-pip-version-check", "--upgrade", "--target", str(folder)]
    if not dependencies:
        options.append("--no-deps")
    command = [*_pip(folder.parent), "install", *options, *requirements]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Unavailable(f"pip could not install {', '.join(requirements)}:\n{done.stdout.strip()}")
    stamp.write_text(wanted)
    return folder


def _pip(scratch: Path) -> list:
    """Returns the command line of pip: of this Python, or else of a new virtual environment."""
    if _works([sys.executable, "-m", "pip", "--version"]):
        return [sys.executable, "-m", "pip"]
    environment = scratch / "venv"
    python = environment / "bin" / "python"
    if not python.exists():
        _works([sys.executable, "-m", "venv", str(environment)])
    if _works([str(python), "-m", "pip", "--version"]):
        return [str(python), "-m", "pip"]
    raise Unavailable("this Python has neither pip nor venv; on Debian and Ubuntu: apt-get install python3-venv")


def _works(command: list) -> bool:
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False
