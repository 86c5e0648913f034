"""Tests sign-in with tokens of a real identity provider, which starts after the server, restarts with another key,
and is unreachable in between.

The provider is the Node package `oidc-provider` (certified by the OpenID Foundation). The server is the built
program with the real clock. Tokens are requested with client credentials for an API that a resource indicator
names.
"""

import base64
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

from . import npm
from .server import Server
from .steps import Counts, Report
from .wheels import Unavailable

SOURCES = Path(__file__).resolve().parent.parent / "oidc"
AUDIENCE = "https://loupe.example"
# Timeout in seconds. The server fetches keys at most every 30 seconds, and every 5 seconds while it has none.
TIMEOUT_SECONDS = 40


def step(report: Report, target: Path, environment: dict):
    """Runs the scenario; each of its checks counts as one test."""
    started = time.monotonic()
    counts = Counts()
    try:
        folder = npm.install(target / "oidc", SOURCES)
        if folder is None:
            counts.skipped += 1
        else:
            for what, problem in _scenario(folder, target, environment):
                counts.passed += problem is None
                counts.failed += problem is not None
                print(f"oidc {what}: {problem or 'ok'}", flush=True)
    except Unavailable as problem:
        print(problem, flush=True)
        counts.failed += 1
    report.record("oidc", counts, time.monotonic() - started)


def _scenario(sources: Path, target: Path, environment: dict):
    """Yields the name of each check with its problem, or `None` if it passed."""
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        port = it.getsockname()[1]
    settings = {"LOUPE_OIDC_ISSUER": f"http://127.0.0.1:{port}", "LOUPE_OIDC_AUDIENCE": AUDIENCE}
    program = target / "debug" / "loupe-server"
    with tempfile.TemporaryDirectory(prefix="loupe-oidc-") as folder:
        with Server(program, Path(folder), environment, settings) as server:
            tenant = server.get("/v1/me")[1]["tenant"]["id"]
            claims = {"tenant_id": tenant, "role": "member"}
            with _Provider(sources, port, "RS256", claims) as provider:
                old = provider.token(AUDIENCE)
                yield "a provider that starts after the server", _wait_for_status(server, old, 200)
                me = server.get("/v1/me", old)[1]
                found = (me["tenant"]["id"], me["role"], me["subject"])
                wanted = (tenant, "member", "dashboard")
                yield "tenant, role and subject", None if found == wanted else f"{found}, not {wanted}"
                yield "a token for another API", _check_status(server, provider.token("https://other.example"), 401)
                damaged = old[:-8] + ("A" * 8 if old[-8:] != "A" * 8 else "B" * 8)
                yield "a damaged token", _check_status(server, damaged, 401)
            yield "the provider is unreachable", _check_status(server, old, 200)
            with _Provider(sources, port, "Ed25519", claims) as provider:
                new = provider.token(AUDIENCE)
                yield "a new key of another kind", _wait_for_status(server, new, 200)
                yield "the removed key", _check_status(server, old, 401)
            yield "the provider is unreachable again", _check_status(server, new, 200)


def _check_status(server: Server, token: str, wanted: int):
    status, body = server.get("/v1/me", token)
    return None if status == wanted else f"{status} {body}, not {wanted}"


def _wait_for_status(server: Server, token: str, wanted: int):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        problem = _check_status(server, token, wanted)
        if problem is None:
            return None
        time.sleep(0.5)
    return f"{problem} after {TIMEOUT_SECONDS} s"


class _Provider:
    """A context manager that runs an identity provider with a new key."""

    def __init__(self, sources: Path, port: int, algorithm: str, claims: dict):
        self._url = f"http://127.0.0.1:{port}"
        self._command = ["node", str(sources / "provider.mjs"), str(port), algorithm]
        self._environment = {**os.environ, "CLAIMS": json.dumps(claims)}
        self._output = []

    def __enter__(self):
        self._child = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._environment
        )
        ready = threading.Event()
        threading.Thread(target=self._read, args=(ready,), daemon=True).start()
        if not ready.wait(20) or self._child.poll() is not None:
            self.__exit__()
            raise Unavailable("the identity provider did not start:\n" + "".join(self._output))
        return self

    def __exit__(self, *_):
        self._child.terminate()
        self._child.wait(15)

    def token(self, audience: str) -> str:
        """Requests an access token for the API with this name."""
        form = {"grant_type": "client_credentials", "scope": "loupe", "resource": audience}
        request = urllib.request.Request(f"{self._url}/token", urllib.parse.urlencode(form).encode())
        client = base64.b64encode(b"dashboard:the-dashboard-of-the-tests").decode()
        request.add_header("Authorization", f"Basic {client}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)["access_token"]

    def _read(self, ready: threading.Event):
        for line in self._child.stdout:
            self._output.append(line)
            if line.strip() == "ready":
                ready.set()
        # The program ended, so that waiting for it is pointless.
        ready.set()
