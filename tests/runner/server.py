"""Runs a `loupe-server` for one step of the run, with an empty data directory and a free port."""

import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote

from .wheels import Unavailable


class Server:
    """A context manager that runs a `loupe-server`.

    `settings` are environment variables; other `LOUPE_` variables are removed. `variables` has the variables for
    exporters that the server prints.
    """

    def __init__(self, program: Path, folder: Path, environment: dict, settings: dict):
        self.variables = {}
        self._output = []
        kept = {name: value for name, value in environment.items() if not name.startswith("LOUPE_")}
        self._command = [str(program), "--listen", "127.0.0.1:0", "--data-dir", str(folder / "data")]
        self._environment = {**kept, **settings}
        self._folder = folder

    def __enter__(self):
        try:
            self._child = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env=self._environment, cwd=self._folder,
            )
        except OSError as problem:
            raise Unavailable(f"{self._command[0]} can't be started ({problem}); run `cargo build` first") from problem
        # Reads the output to its end, so that the server never blocks on a full pipe.
        threading.Thread(target=self._read, daemon=True).start()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self._child.poll() is None:
            if len(self.variables) == 3 and self.get("/readyz")[0] == 200:
                return self
            time.sleep(0.02)
        self.__exit__()
        raise Unavailable(f"the server did not become ready, or did not print the variables:\n{self.output()}")

    def __exit__(self, *_):
        self._child.terminate()
        try:
            self._child.wait(15)
        except subprocess.TimeoutExpired:
            self._child.kill()

    def get(self, path: str, token: str = None):
        """Sends a GET request with `token`, or else with the printed key.

        Returns the status and the JSON body, or `None` if the body is not JSON.
        """
        return self._send(path, token, None)

    def post(self, path: str, body):
        """Sends a POST request with JSON and the printed key. Returns the same as `get`."""
        return self._send(path, None, json.dumps(body).encode())

    def _send(self, path: str, token: str, body: bytes):
        request = urllib.request.Request(self.variables["OTEL_EXPORTER_OTLP_ENDPOINT"].rstrip("/") + path, body)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        name, _, value = self.variables["OTEL_EXPORTER_OTLP_HEADERS"].partition("=")
        request.add_header(name, f"Bearer {token}" if token else unquote(value))
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                status, body = answer.status, answer.read()
        except urllib.error.HTTPError as problem:
            status, body = problem.code, problem.read()
        except OSError:
            return 0, None
        try:
            return status, json.loads(body)
        except ValueError:
            return status, None

    def output(self) -> str:
        """Returns the output and the log so far."""
        return "".join(self._output)

    def _read(self):
        for raw in self._child.stdout:
            line = raw.decode(errors="replace")
            self._output.append(line)
            for name, value in re.findall(r"(OTEL_EXPORTER_OTLP_(?:ENDPOINT|PROTOCOL|HEADERS))=(\S+)", line):
                self.variables.setdefault(name, value.strip("'\""))
