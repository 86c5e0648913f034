"""A trace from the stock OpenTelemetry SDKs, sent to a real server and read back.

The server is started on an empty data directory. The exporters get nothing but the three
`OTEL_EXPORTER_OTLP_…` lines that it prints, as a user would paste them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote

from .steps import Counts, Report
from .wheels import Unavailable, install

PYTHON_SDK = ["opentelemetry-sdk==1.45.2", "opentelemetry-exporter-otlp-proto-http==1.45.2"]
SOURCES = Path(__file__).resolve().parent.parent / "sdk"

PROTOBUF = "http/protobuf"
JSON = "http/json"


def step(report: Report, target: Path, environment: dict):
    """Sends and checks a trace for each SDK and protocol; each is one test."""
    started = time.monotonic()
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="loupe-sdk-") as folder:
        try:
            senders = [("python", PROTOBUF, _python(target))]
            javascript = _javascript(target)
            if javascript:
                senders += [("javascript", PROTOBUF, javascript), ("javascript", JSON, javascript)]
            else:
                counts.skipped += 2
            with _Server(target / "debug" / "loupe-server", Path(folder), environment) as server:
                for language, protocol, command in senders:
                    problem = _deliver(server, command, protocol)
                    counts.passed += problem is None
                    counts.failed += problem is not None
                    print(f"sdk {language} {protocol}: {problem or 'ok'}", flush=True)
        except Unavailable as problem:
            print(problem, flush=True)
            counts.failed += 1
    report.record("sdk", counts, time.monotonic() - started)


class _Server:
    """A running `loupe-server`; `variables` holds what it printed for the exporters."""

    def __init__(self, program: Path, folder: Path, environment: dict):
        self.variables = {}
        self._output = []
        kept = {name: value for name, value in environment.items() if not name.startswith("LOUPE_")}
        self._command = [str(program), "--listen", "127.0.0.1:0", "--data-dir", str(folder / "data")]
        self._environment = kept
        self._folder = folder

    def __enter__(self):
        try:
            self._child = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env=self._environment, cwd=self._folder,
            )
        except OSError as problem:
            raise Unavailable(f"{self._command[0]} can't be started ({problem}); run `cargo build` first") from problem
        # Reads on to the end, so that the server never blocks on a full pipe.
        threading.Thread(target=self._read, daemon=True).start()
        give_up = time.monotonic() + 20
        while time.monotonic() < give_up and self._child.poll() is None:
            if len(self.variables) == 3 and self.get("/readyz")[0] == 200:
                return self
            time.sleep(0.02)
        self.__exit__()
        raise Unavailable("the server did not get ready, or did not print its lines:\n" + "".join(self._output))

    def __exit__(self, *_):
        self._child.terminate()
        try:
            self._child.wait(15)
        except subprocess.TimeoutExpired:
            self._child.kill()

    def get(self, path: str):
        """The status and the JSON body (None unless it is JSON) of a GET with the printed key."""
        request = urllib.request.Request(self.variables["OTEL_EXPORTER_OTLP_ENDPOINT"].rstrip("/") + path)
        name, _, value = self.variables["OTEL_EXPORTER_OTLP_HEADERS"].partition("=")
        request.add_header(name, unquote(value))
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                status, body = answer.status, answer.read()
        except urllib.error.HTTPError as problem:
            status, body = problem.code, problem.read()
        except OSError:
            return 0, None
        try:
            return status, json.loads(body)
        except ValueError:
            return status, None

    def _read(self):
        for raw in self._child.stdout:
            line = raw.decode(errors="replace")
            self._output.append(line)
            for name, value in re.findall(r"(OTEL_EXPORTER_OTLP_(?:ENDPOINT|PROTOCOL|HEADERS))=(\S+)", line):
                self.variables.setdefault(name, value.strip("'\""))


def _python(target: Path) -> list:
    packages = install(target / "sdk" / "python", *PYTHON_SDK, dependencies=True)
    return ["env", f"PYTHONPATH={packages}", sys.executable, str(SOURCES / "python" / "send.py")]


def _javascript(target: Path):
    """The command line of the JavaScript sender, or None without npm."""
    if not (shutil.which("npm") and shutil.which("node")):
        return None
    folder = target / "sdk" / "javascript"
    folder.mkdir(parents=True, exist_ok=True)
    for source in (SOURCES / "javascript").iterdir():
        shutil.copy(source, folder)
    npm = ["npm", "ci" if (folder / "package-lock.json").exists() else "install", "--no-fund", "--no-audit"]
    if not (folder / "node_modules" / "@opentelemetry" / "sdk-node").is_dir():
        done = subprocess.run(npm, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Unavailable(f"npm could not install the JavaScript SDK:\n{done.stdout}")
    return ["node", str(folder / "send.mjs")]


def _deliver(server: _Server, command: list, protocol: str):
    """Sends a trace and reads it back. Answers what is wrong with it, or None."""
    variables = {**server.variables, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    sent = subprocess.run(
        command, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60
    )
    if sent.returncode != 0 or sent.stderr.strip():
        return f"the sender complained (exit code {sent.returncode}): {sent.stderr.strip()}"
    # No waiting here: what was acknowledged is there.
    status, trace = server.get(f"/v1/traces/{sent.stdout.strip()}")
    if status != 200:
        return f"GET /v1/traces/{sent.stdout.strip()} answered {status}: {trace}"
    spans = {span["name"]: span for span in trace["spans"]}
    expected = {
        "span_count": (trace["span_count"], 3),
        "total_token_count": (trace["total_token_count"], 150),
        "priced": ((trace["cost"] or 0) > 0, True),
        "error": (trace["error"], None),
        "types": (sorted(span["type"] for span in trace["spans"]), ["llm", "other", "tool"]),
        "model": (spans.get("chat gpt-4o", {}).get("model"), "gpt-4o-2024-08-06"),
        "input": ("introduced the transformer" in (spans.get("chat gpt-4o", {}).get("input") or ""), True),
        "output": ("Attention" in (spans.get("chat gpt-4o", {}).get("output") or ""), True),
    }
    wrong = [f"{name} is {found!r}, not {wanted!r}" for name, (found, wanted) in expected.items() if found != wanted]
    return "; ".join(wrong) or None
