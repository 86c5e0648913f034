"""Sends a trace with the standard OpenTelemetry SDKs to a real server and reads it back.

The server starts with an empty data directory. The exporters are configured only with the three variables
`OTEL_EXPORTER_OTLP_…` that the server prints.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import npm
from .server import Server
from .steps import Counts, Report
from .wheels import Unavailable, install

PYTHON_SDK = ["opentelemetry-sdk==1.45.2", "opentelemetry-exporter-otlp-proto-http==1.45.2"]
SOURCES = Path(__file__).resolve().parent.parent / "sdk"

PROTOBUF = "http/protobuf"
JSON = "http/json"


def step(report: Report, target: Path, environment: dict):
    """Sends and checks a trace for each SDK and protocol; each counts as one test."""
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
            with Server(target / "debug" / "loupe-server", Path(folder), environment, {}) as server:
                for language, protocol, command in senders:
                    problem = _deliver(server, command, protocol)
                    counts.passed += problem is None
                    counts.failed += problem is not None
                    print(f"sdk {language} {protocol}: {problem or 'ok'}", flush=True)
        except Unavailable as problem:
            print(problem, flush=True)
            counts.failed += 1
    report.record("sdk", counts, time.monotonic() - started)


def _python(target: Path) -> list:
    packages = install(target / "sdk" / "python", *PYTHON_SDK, dependencies=True)
    return ["env", f"PYTHONPATH={packages}", sys.executable, str(SOURCES / "python" / "send.py")]


def _javascript(target: Path):
    """Returns the command line of the JavaScript sender, or `None` without npm."""
    folder = npm.install(target / "sdk" / "javascript", SOURCES / "javascript")
    return folder and ["node", str(folder / "send.mjs")]


def _deliver(server: Server, command: list, protocol: str):
    """Sends a trace and reads it back. Returns its problem, or `None`."""
    variables = {**server.variables, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    sent = subprocess.run(
        command, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60
    )
    if sent.returncode != 0 or sent.stderr.strip():
        return f"the sender failed or printed an error (exit code {sent.returncode}): {sent.stderr.strip()}"
    # Acknowledged traces are visible immediately.
    status, trace = server.get(f"/v1/traces/{sent.stdout.strip()}")
    if status != 200:
        return f"GET /v1/traces/{sent.stdout.strip()} returned status {status}: {trace}"
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
