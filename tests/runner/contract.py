"""The OpenAPI document, judged by programs that others wrote.

`openapi-spec-validator` says whether it is valid OpenAPI 3.1. `schemathesis` makes requests from it, well-formed
ones and others, and compares each response of a real server on SQLite with what the document promises. The
number of requests is bounded and their seed is fixed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .server import Server
from .steps import Counts, Report
from .wheels import Unavailable, install

VALIDATOR = "openapi-spec-validator==0.9.0"
SCHEMATHESIS = "schemathesis==4.32.5"

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# What each operation is sent at most in each phase; the seed makes a failure one that comes again.
EXAMPLES = "15"
SEED = "20261122"
# Seconds after which the run is given up; it takes about a minute.
LONGEST = 300


def step(report: Report, target: Path, environment: dict):
    """Validates the document and tries the server against it; each is one test."""
    started = time.monotonic()
    counts = Counts()
    try:
        packages = install(target / "contract", VALIDATOR, SCHEMATHESIS, dependencies=True)
        with tempfile.TemporaryDirectory(prefix="loupe-contract-") as folder:
            folder = Path(folder)
            program = target / "debug" / "loupe-server"
            with Server(program, folder, environment, {}) as server:
                for name, problem in _judge(server, program, packages, folder):
                    counts.passed += problem is None
                    counts.failed += problem is not None
                    print(f"contract {name}: {problem or 'ok'}", flush=True)
    except Unavailable as problem:
        print(problem, flush=True)
        counts.failed += 1
    report.record("contract", counts, time.monotonic() - started)


def _judge(server: Server, program: Path, packages: Path, folder: Path):
    """What was judged, each with what is wrong with it, or None."""
    python = {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    status, document = server.get("/v1/openapi.json")
    if status != 200:
        raise Unavailable(f"GET /v1/openapi.json answered {status}")
    path = folder / "openapi.json"
    path.write_text(json.dumps(document))
    yield "document", _run([sys.executable, "-m", "openapi_spec_validator", str(path)], python, folder)

    # An owner's session reaches every operation; the plan of the first tenant has no limits.
    tenant = server.get("/v1/me")[1]["tenant"]["id"]
    issue = [str(program), "--data-dir", str(folder / "data"), "admin", "issue-token", "--json"]
    issued = subprocess.run([*issue, "--tenant", tenant, "--role", "owner"], stdout=subprocess.PIPE, text=True)
    if issued.returncode != 0:
        raise Unavailable("no session token could be issued")
    address = server.variables["OTEL_EXPORTER_OTLP_ENDPOINT"].rstrip("/")
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", str(path), "--url", address,
        "--header", f"Authorization: Bearer {json.loads(issued.stdout)['token']}",
        "--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES, "--seed", SEED,
        "--generation-database", "none", "--request-timeout", "20", "--no-color", "--warnings", "off",
        "--suppress-health-check", "all", "--continue-on-failure",
        # It never ends.
        "--exclude-path", "/v1/traces/stream",
    ]  # fmt: skip
    yield "requests", _run(command, python, folder)


def _run(command: list, environment: dict, folder: Path):
    """What a program prints if it fails, or None."""
    try:
        done = subprocess.run(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"not done after {LONGEST} s"
    return None if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout}"
