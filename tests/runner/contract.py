"""Tests the OpenAPI document with external programs.

`openapi-spec-validator` validates the document against OpenAPI 3.1. `schemathesis` generates valid and invalid
requests from it and compares each response of a real server on SQLite with the document. The number of requests
is limited and their seed is fixed.
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
# Some generated requests have no token, and must not exceed the rate limit of the address.
SETTINGS = {"LOUPE_UNAUTHENTICATED_PER_MINUTE": "1000000"}
# Maximum number of requests per operation and phase. The fixed seed makes failures reproducible.
MAX_EXAMPLES = "10"
SEED = "20261122"
# Timeout of a program in seconds. A run takes about a minute on an idle machine.
TIMEOUT_SECONDS = 600
# A text query without an embedding provider is 502, as the specification says.
CONFIGURATION = """\
[[operations]]
include-path = "/v1/search/spans"
include-method = "GET"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 502]
"""


def step(report: Report, target: Path, environment: dict):
    """Validates the document and tests the server against it; each counts as one test."""
    started = time.monotonic()
    counts = Counts()
    try:
        packages = install(target / "contract", VALIDATOR, SCHEMATHESIS, dependencies=True)
        with tempfile.TemporaryDirectory(prefix="loupe-contract-") as folder:
            folder = Path(folder)
            program = target / "debug" / "loupe-server"
            with Server(program, folder, environment, SETTINGS) as server:
                for name, problem in _run_checks(server, program, packages, folder):
                    counts.passed += problem is None
                    counts.failed += problem is not None
                    print(f"contract {name}: {problem or 'ok'}", flush=True)
    except Unavailable as problem:
        print(problem, flush=True)
        counts.failed += 1
    report.record("contract", counts, time.monotonic() - started)


def _run_checks(server: Server, program: Path, packages: Path, folder: Path):
    """Yields the name of each check with its problem, or `None` if it passed."""
    python = {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    status, document = server.get("/v1/openapi.json")
    if status != 200:
        raise Unavailable(f"GET /v1/openapi.json returned status {status}")
    path = folder / "openapi.json"
    path.write_text(json.dumps(document))
    yield "document", _run([sys.executable, "-m", "openapi_spec_validator", str(path)], python, folder)

    # An owner may call every operation, and the plan of the first tenant has no limits.
    tenant = server.get("/v1/me")[1]["tenant"]["id"]
    issue = [str(program), "--data-dir", str(folder / "data"), "admin", "issue-token", "--json"]
    issued = subprocess.run([*issue, "--tenant", tenant, "--role", "owner"], stdout=subprocess.PIPE, text=True)
    if issued.returncode != 0:
        raise Unavailable("no session token could be issued")
    token = json.loads(issued.stdout)["token"]
    (folder / "schemathesis.toml").write_text(CONFIGURATION)
    address = server.variables["OTEL_EXPORTER_OTLP_ENDPOINT"].rstrip("/")
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", str(path), "--url", address,
        "--header", f"Authorization: Bearer {token}",
        "--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", MAX_EXAMPLES, "--seed", SEED,
        "--generation-database", "none", "--request-timeout", "20", "--no-color", "--warnings", "off",
        "--suppress-health-check", "all", "--continue-on-failure",
        # The stream never ends, and the other operation removes the member who sends the requests.
        "--exclude-path", "/v1/traces/stream", "--exclude-path", "/v1/members/{id}",
    ]  # fmt: skip
    problem = _run(command, python, folder)
    if problem is None:
        # Rejections are documented too, so at least one request must have succeeded.
        status, stored = server.get("/v1/traces", token)
        if status != 200 or not stored["traces"]:
            problem = f"no request stored a trace; the list of traces has status {status}"
    yield "requests", problem


def _run(command: list, environment: dict, folder: Path):
    """Runs a program. Returns its output if it fails, or else `None`."""
    try:
        done = subprocess.run(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"timed out after {TIMEOUT_SECONDS} s"
    if done.returncode != 0:
        return f"exit code {done.returncode}\n{done.stdout}"
    # The end of the report has the number of requests.
    print("\n".join(done.stdout.splitlines()[-20:]), flush=True)
    return None
