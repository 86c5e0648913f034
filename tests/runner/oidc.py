"""Signing in with tokens of a real identity provider, which is away at first, changes its key by a
restart, and is away in between.

The provider is the Node package `oidc-provider` (certified by the OpenID Foundation), the server
the built one with its own clock. A token is got as any application gets one, by client credentials
for an API that is named by a resource indicator.
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
# The server asks for new keys at most every 30 seconds, and every 5 as long as it has none.
LONGEST = 40


def step(report: Report, target: Path, environment: dict):
    """Runs the scenario; each thing that has to hold is one test."""
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
    """What has to hold, each with what is wrong with it, or None."""
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
                yield "a provider that came after the server", _until(server, old, 200)
                me = server.get("/v1/me", old)[1]
                found = (me["tenant"]["id"], me["role"], me["subject"])
                wanted = (tenant, "member", "dashboard")
                yield "who it is", None if found == wanted else f"{found}, not {wanted}"
                yield "a token for another API", _is(server, provider.token("https://other.example"), 401)
                damaged = old[:-8] + ("A" * 8 if old[-8:] != "A" * 8 else "B" * 8)
                yield "a damaged token", _is(server, damaged, 401)
            yield "the provider is away", _is(server, old, 200)
            with _Provider(sources, port, "Ed25519", claims) as provider:
                new = provider.token(AUDIENCE)
                yield "a new key of another kind", _until(server, new, 200)
                yield "the key that is gone", _is(server, old, 401)
            yield "the provider is away again", _is(server, new, 200)


def _is(server: Server, token: str, wanted: int):
    status, body = server.get("/v1/me", token)
    return None if status == wanted else f"{status} {body}, not {wanted}"


def _until(server: Server, token: str, wanted: int):
    give_up = time.monotonic() + LONGEST
    while time.monotonic() < give_up:
        problem = _is(server, token, wanted)
        if problem is None:
            return None
        time.sleep(0.5)
    return f"{problem} after {LONGEST} s"


class _Provider:
    """A running identity provider with a key of its own; a context manager."""

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
        """An access token for the API with this name."""
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
        # Ended, which nobody should wait for.
        ready.set()
