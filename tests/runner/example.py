"""Runs `docs/examples/control_loop.py` against a real server, with a small script in place of the model.

The script answers in prose, and in JSON if the system message asks for JSON.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .server import Server
from .steps import Counts, Report
from .wheels import Unavailable

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "control_loop.py"
MODEL = "scripted"
TIMEOUT_SECONDS = 300


def step(report: Report, target: Path, environment: dict):
    """Runs the example; it counts as one test."""
    started = time.monotonic()
    counts = Counts()
    try:
        problem = _run(target / "debug" / "loupe-server", environment)
        counts.passed += problem is None
        counts.failed += problem is not None
        print(f"example control_loop: {problem or 'ok'}", flush=True)
    except Unavailable as problem:
        print(problem, flush=True)
        counts.failed += 1
    report.record("example", counts, time.monotonic() - started)


def _run(program: Path, environment: dict):
    """Returns the problem, or `None`."""
    with tempfile.TemporaryDirectory(prefix="loupe-example-") as folder, _Model() as model_url:
        settings = {"LOUPE_JUDGE_OPENAI_BASE_URL": model_url, "LOUPE_JUDGE_OPENAI_CHEAP_MODEL": MODEL}
        with Server(program, Path(folder), environment, settings) as server:
            variables = {
                **os.environ,
                "LOUPE_URL": server.variables["OTEL_EXPORTER_OTLP_ENDPOINT"],
                "LOUPE_SESSION_TOKEN": _session(program, folder, server),
            }
            command = [sys.executable, str(EXAMPLE), "--model-url", model_url, "--model", MODEL]
            done = subprocess.run(
                command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                timeout=TIMEOUT_SECONDS,
            )
            print(done.stdout, flush=True)
            if done.returncode != 0:
                return f"exit code {done.returncode}\n{server.output()[-2000:]}"
    expected = [r"json_schema_conformance: 0(\.0)? -> 1", r"lower bound 1(\.0)?: ab_passed", r"version 2: \{"]
    missing = [it for it in expected if not re.search(it, done.stdout)]
    return f"the output has no {missing}" if missing else None


def _session(program: Path, folder: str, server: Server) -> str:
    """Returns the session token of an owner."""
    tenant = server.get("/v1/me")[1]["tenant"]["id"]
    command = [str(program), "admin", "issue-token", "--tenant", tenant, "--role", "owner", "--json"]
    command += ["--data-dir", str(Path(folder) / "data")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOUPE_")}
    done = subprocess.run(command, env=kept, stdout=subprocess.PIPE, text=True, timeout=60)
    if done.returncode != 0:
        raise Unavailable("no session token could be issued")
    return json.loads(done.stdout)["token"]


class _Model(BaseHTTPRequestHandler):
    """A context manager that serves the script with OpenAI's protocol; returns its base URL."""

    def __init__(self, *arguments):
        if arguments:
            super().__init__(*arguments)

    def __enter__(self) -> str:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        system = " ".join(it["content"] for it in request["messages"] if it["role"] == "system")
        content = "Category: order. We will look into it."
        if "JSON" in system:
            content = json.dumps({"category": "order", "reply": "We will look into it."})
        usage = {"prompt_tokens": 40, "completion_tokens": 12, "total_tokens": 52}
        choices = [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]
        body = json.dumps({"model": request["model"], "choices": choices, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Prints nothing for each request."""
