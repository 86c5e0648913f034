#!/usr/bin/env python3
"""From a failing application to a shipped prompt, with a local model.

The application sorts support tickets, but its prompt does not say that the answer must be JSON. An eval rule finds this,
a policy repeats the calls with a better prompt, and this prompt is tested and shipped. Needs Python 3.9 or later, and a
server of a model with OpenAI's protocol, for example Ollama:

    ollama pull qwen2.5:1.5b

Start Loupe so that its control actions use the same model, in a folder of its own:

    LOUPE_JUDGE_OPENAI_BASE_URL=http://127.0.0.1:11434/v1 LOUPE_JUDGE_OPENAI_CHEAP_MODEL=qwen2.5:1.5b loupe-server

In another terminal, export a session token of an owner. The server has printed the command that issues one:

    export LOUPE_URL=http://127.0.0.1:4600 LOUPE_SESSION_TOKEN=...
    python3 control_loop.py --model-url http://127.0.0.1:11434/v1 --model qwen2.5:1.5b

The example creates a project of its own, so it can be repeated.
"""

import argparse
import datetime
import json
import os
import sys
import time
import urllib.error
import urllib.request

PROMPT_NAME = "triage"
METRIC = "json_schema_conformance"
FIRST_PROMPT = "You sort the tickets of a web shop. Name the category (order, payment or other), and write a short reply."
IMPROVEMENT = (
    'Answer only with a JSON object such as {"category": "order", "reply": "..."}. '
    "Write no Markdown and no other text."
)
SCHEMA = {
    "type": "object",
    "required": ["category", "reply"],
    "properties": {"category": {"enum": ["order", "payment", "other"]}, "reply": {"type": "string"}},
}
TICKETS = [
    "Where is my order A-17?",
    "You charged me twice.",
    "Do you ship to Switzerland?",
    "My parcel arrived damaged.",
    "Can I pay in instalments?",
    "I would like to return the shoes.",
    "When is size 42 back in stock?",
    "The discount code does not work.",
]
TIMEOUT_SECONDS = 900


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model-url", default="http://127.0.0.1:11434/v1", help="base URL of the model's server")
    parser.add_argument("--model", required=True, help="name of the model")
    options = parser.parse_args()
    loupe = Loupe(os.environ.get("LOUPE_URL", "http://127.0.0.1:4600"), os.environ["LOUPE_SESSION_TOKEN"])
    project = loupe.post("/v1/projects", {"name": f"control loop {datetime.datetime.now():%Y-%m-%d %H:%M:%S}"})["id"]
    key = loupe.post("/v1/apikeys", {"name": "triage", "project_id": project})["secret"]
    application = Application(Loupe(loupe.url, key), options.model_url, options.model)

    step("1. The application gets its prompt from Loupe")
    first = loupe.post(
        "/v1/prompts/deployments", {"project_id": project, "prompt_name": PROMPT_NAME, "template": FIRST_PROMPT}
    )
    loupe.post(f"/v1/prompts/deployments/{first['id']}/approve", {"note": "the prompt that the application had"})

    step("2. An eval rule checks its answers, and a policy repeats bad ones with a better prompt")
    loupe.post("/v1/eval-rules", {
        "project_id": project,
        "metric_name": METRIC,
        "evaluator_type": "rule",
        "config": {"schema": SCHEMA},
    })
    policy = loupe.post("/v1/policies", {
        "project_id": project,
        "name": "Ask for JSON",
        "trigger": {"type": "evaluation", "metric_name": METRIC, "max_score": 0.5},
        "action_type": "prompt_modification",
        "action_config": {"system_suffix": IMPROVEMENT},
        "max_cascade_depth": 1,
    })["id"]

    step("3. The application answers tickets")
    for ticket in TICKETS:
        print(f"   {ticket}\n     {application.answer(ticket)}")

    step("4. The policy acts; the diff shows the improvement")
    improved = wait(lambda: best_action(loupe, policy), "no action has improved an answer")
    print(f"   before: {improved['original_output']}\n   after:  {improved['remediated_output']}")
    for delta in improved["eval_deltas"]:
        print(f"   {delta['metric_name']}: {delta['original_score']} -> {delta['remediated_score']}")

    step("5. The prompt of this action becomes a candidate, which is tested on the stored tickets")
    candidate = loupe.post("/v1/prompts/deployments", {
        "project_id": project,
        "prompt_name": PROMPT_NAME,
        "source_action_id": improved["action_id"],
        "mode": "replay",
        "ab": {"metric_name": METRIC, "min_samples": len(TICKETS)},
    })
    path = f"/v1/prompts/deployments/{candidate['id']}"
    tested = wait(lambda: ended(loupe.get(path)), "the test has not ended")
    test = tested["ab"]
    print(f"   baseline: {test['baseline']}\n   candidate: {test['candidate']}")
    print(f"   effect {test['effect']}, lower bound {test['lower_bound']}: {tested['status']}")
    if tested["status"] != "ab_passed":
        sys.exit(f"   the candidate is not better: {tested['reason']}")

    step("6. An owner ships it, and the application uses it")
    loupe.post(f"{path}/approve", {"note": "answers are JSON now"})
    answer = wait(lambda: application.version() == tested["version"] and application.answer(TICKETS[0]), "not served")
    print(f"   version {tested['version']}: {answer}")


def best_action(loupe, policy):
    """Returns the diff of an action that improved a score, or `None`."""
    for action in loupe.get(f"/v1/control/actions?policy_id={policy}&status=succeeded")["actions"]:
        diff = loupe.get(f"/v1/control/actions/{action['id']}/diff")
        if any((delta["delta"] or 0) > 0 for delta in diff.get("eval_deltas", [])):
            return diff
    return None


def ended(deployment):
    return deployment if deployment["status"] != "ab_running" else None


def wait(check, problem):
    """Returns the first result of `check` that is true."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        result = check()
        if result:
            return result
        time.sleep(1)
    sys.exit(f"   {problem} after {TIMEOUT_SECONDS} s")


def step(title):
    print(f"\n{title}", flush=True)


class Application:
    """The application: asks Loupe for the prompt, calls the model, and sends a trace."""

    def __init__(self, loupe, model_url, model):
        self.loupe, self.model_url, self.model = loupe, model_url, model

    def version(self):
        return self.loupe.get(f"/v1/prompts/{PROMPT_NAME}")["version"]

    def answer(self, ticket):
        prompt = self.loupe.get(f"/v1/prompts/{PROMPT_NAME}")
        messages = [{"role": "system", "content": prompt["template"]}, {"role": "user", "content": ticket}]
        started = now()
        reply = send("POST", f"{self.model_url}/chat/completions", {
            "model": self.model, "messages": messages, "temperature": 0,
        })
        output, usage = reply["choices"][0]["message"]["content"].strip(), reply.get("usage", {})
        times = {"start_time": started, "end_time": now()}
        self.loupe.post("/v1/ingest", {
            "name": PROMPT_NAME,
            "input": ticket,
            "output": output,
            # The tags count the scores of the trace for this version of the prompt.
            "tags": prompt["tags"],
            "spans": [{
                "name": "answer", "type": "llm", "model": self.model, "input": json.dumps(messages), "output": output,
                "prompt_tokens": usage.get("prompt_tokens"), "completion_tokens": usage.get("completion_tokens"), **times,
            }],
        })
        return output


class Loupe:
    """The API of Loupe, with a key or a session token."""

    def __init__(self, url, token):
        self.url, self.token = url.rstrip("/"), token

    def get(self, path):
        return send("GET", self.url + path, None, self.token)

    def post(self, path, body):
        return send("POST", self.url + path, body, self.token)


def send(method, url, body, token=None):
    """Sends JSON; returns the JSON of the response."""
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), method=method)
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=300) as response:
            return json.load(response)
    except urllib.error.HTTPError as problem:
        sys.exit(f"{method} {url} returned {problem.code}: {problem.read().decode(errors='replace')}")
    except OSError as problem:
        sys.exit(f"{method} {url}: {problem}")


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


if __name__ == "__main__":
    main()
