"""Checks that every statement that the server sent to PostgreSQL during the tests names its tenant.

A database that is distributed by tenant executes such a statement on one machine, and a statement without its
tenant could show rows of another tenant. Each use of a table in a statement, in subqueries and joins too, needs a
comparison `tenant_id = $n` or `tenant_id = ANY($n)`. This file imports no other module of the runner, so that
doctest can run its examples.
"""

import json
import re
from pathlib import Path

# Tables that no tenant owns.
SHARED = {"setting", "api_key", "external_tenant"}

# Statements across tenants, with their purpose. They take no lock and are not part of a request.
OVER_TENANTS = {
    "SELECT tenant_id FROM job WHERE status = 'ready' AND lane = $1": "tenants with due jobs",
    "SELECT DISTINCT tenant_id FROM job WHERE status = 'running'": "tenants with jobs of lost workers",
    "FROM project WHERE tenant_id > $1 AND retention_days IS NOT NULL": "the next tenant with a retention",
    "FROM project WHERE tenant_id > $1 AND archived_at IS NULL": "the next tenant with an active project",
    "FROM anomaly WHERE tenant_id > $1": "the next tenant with anomalies",
    "FROM idempotency WHERE tenant_id > $1": "the next tenant with expired idempotency keys",
    "FROM rate_window WHERE tenant_id > $1": "the next tenant with old rate windows",
    "FROM eval_bulk WHERE tenant_id > $1": "the next tenant with bulk evaluations",
    "FROM webhook_event WHERE tenant_id > $1": "the next tenant with webhook events",
    "FROM webhook_delivery WHERE tenant_id > $1": "the next tenant with webhook deliveries",
    "FROM webhook_attempt WHERE tenant_id > $1": "the next tenant with attempts of webhook deliveries",
    "FROM failure_cluster WHERE tenant_id > $1": "the next tenant with failure clusters",
    "FROM failure_trend WHERE tenant_id > $1": "the next tenant with trends of failure clusters",
    "FROM prompt_score WHERE tenant_id > $1": "the next tenant with scores of prompts",
    "FROM prompt_replay WHERE tenant_id > $1": "the next tenant with pairs of replay tests",
    "FROM failure_rule_match WHERE tenant_id > $1": "the next tenant with matches of failure rules",
    "FROM rejected_input WHERE tenant_id > $1": "the next tenant with rejected input",
    "FROM held_input WHERE tenant_id > $1": "the next tenant with held input",
    "SELECT tenant_id, COUNT(*), MIN(created_at) FROM metric_delta GROUP BY tenant_id": "tenants with metric deltas to fold",
    "UPDATE eval_bulk SET position_key = COALESCE": "migration 21: positions of bulk evaluations",
    "INSERT INTO trace_tail (tenant_id, id, first_key, last_key, traces) SELECT tenant_id, MIN(key)": "migration 21: stored traces are the tail",
    "SELECT tenant_id FROM trace_tail GROUP BY tenant_id HAVING": "tenants with traces to index",
    "FROM trace_run WHERE tenant_id > $1": "the next tenant with runs of the trace index",
    "FROM trace WHERE tenant_id > $1 AND NOT tokens_measured": "the next tenant with unmeasured traces",
    "FROM span_vector WHERE tenant_id > $1 AND NOT indexed": "the next tenant with vectors outside the graph",
    "SELECT COUNT(*) AS jobs, MIN(run_at) AS oldest FROM (SELECT run_at FROM job": "the number of waiting jobs, for the operator's metrics",
    'FROM "tenant" ORDER BY': "the operator's list of tenants",
    "WHERE NOT EXISTS (SELECT 1 FROM tenant t WHERE t.tenant_id = x.tenant_id)": "the operator's check for rows without a tenant",
    "SELECT tenant_id FROM tenant WHERE tenant_id > $1 ORDER BY tenant_id LIMIT 200": "the next tenants of the operator's check",
    "INSERT INTO external_tenant (external_id, tenant_id) SELECT": "a migration",
    'SELECT COUNT(*) AS num_items FROM (SELECT "tenant"."tenant_id"': "whether this is the first start",
}

# Statements of migrations, which change the rows of all tenants.
MIGRATION_STATEMENTS = {
    "INSERT INTO failure_rule (tenant_id, id, name, enabled, project_id, failure_types, metric_name, max_score, filter, "
    "min_count, window_minutes, created_at, updated_at, last_fired_at) SELECT tenant_id, tenant_id, 'Any failure', TRUE, "
    "NULL, 15, NULL, NULL, '{}', 1, 60, created_at, created_at, NULL FROM tenant",
}

# Statements of test suites through the server's connection, which read or delete all rows.
TEST_STATEMENTS = {
    'DELETE FROM "job"',
    'SELECT "job"."tenant_id", "job"."id", "job"."lane", "job"."kind", "job"."payload", "job"."status", '
    '"job"."run_at", "job"."attempts", "job"."max_attempts", "job"."lease_until", "job"."fence", '
    '"job"."last_error", "job"."created_at" FROM "job" ORDER BY "job"."id" ASC',
    "SELECT tenant_id FROM failure",
    "SELECT tenant_id FROM failure_cluster",
    "SELECT tenant_id FROM failure_rule_match",
    "SELECT tenant_id FROM failure_trend",
    "SELECT trace_id FROM failure",
    "SELECT trace_id FROM failure_rule_match",
    "ANALYZE failure, failure_cluster",
    'DELETE FROM "idempotency"',
    'DELETE FROM "metric_delta"',
    'DELETE FROM "metric_node"',
    'DELETE FROM "project"',
    'DELETE FROM "provider_credential"',
    'DELETE FROM "tenant"',
    'UPDATE "failure_clustering" SET "version" = "version" + $1',
}

# Ends of further statements of test suites. They have no condition, unlike all statements of the server.
TEST_STATEMENT_ENDS = (
    'FROM "span_vector"',
    'FROM "body"',
    'FROM "held_input"',
    'FROM "job"',
    'FROM "job" ORDER BY "job"."run_at" ASC',
    'FROM "failure" LIMIT $1',
    'FROM "failure_cluster" LIMIT $1',
    'FROM "webhook_delivery"',
    'FROM "webhook_event"',
    'FROM "webhook_event" ORDER BY "webhook_event"."id" ASC',
    'FROM "trace" WHERE "trace"."measured" = $1) AS "sub_query"',
    'FROM "idempotency" LIMIT $1',
    'FROM "idempotency") AS "sub_query"',
    'FROM "audit_record") AS "sub_query"',
    'FROM "body") AS "sub_query"',
    'FROM "provider_credential" ORDER BY "provider_credential"."tenant_id" ASC, '
    '"provider_credential"."provider" ASC',
)

# Two statements that read each table without a condition: the operator's count of its rows, and the rows as text, in
# which the tests of redaction search for values.
_WHOLE_TABLE = re.compile(r'SELECT COUNT\(\*\) FROM "\w+"|SELECT t::text AS line FROM "\w+" t')

# Words that may follow a table's name in place of an alias.
_NO_ALIAS = "where|set|join|inner|left|right|cross|on|order|group|limit|for|from|using|union|returning"
_TABLE = re.compile(
    r'(?:\bFROM|\bJOIN|\bUPDATE|,)\s+"?(?P<table>\w+)\b(?!"?\.)"?'
    rf'(?:\s+(?:AS\s+)?(?!(?:{_NO_ALIAS})\b)"?(?P<alias>\w+)"?)?',
    re.IGNORECASE,
)


def tables(root: Path) -> set:
    """Returns the tables with a tenant, as the entities declare them."""
    sources = (it.read_text() for it in (root / "entities" / "src").glob("*.rs"))
    return {name for text in sources for name in re.findall(r'table_name = "(\w+)"', text)} - SHARED


def sent(log: Path) -> list:
    """Returns the distinct statements of the server in a JSON log of PostgreSQL, in order."""
    found = {}
    with log.open(errors="replace") as lines:
        for line in lines:
            entry = json.loads(line)
            logged = re.match(r"(?:execute [^:]*|statement): (.*)", entry.get("message", ""), re.DOTALL)
            if logged and entry.get("application_name") == "loupe-server":
                found[" ".join(logged.group(1).split())] = True
    return list(found)


def forgotten(statement: str, owned: set) -> list:
    """Returns the tables that `statement` uses without their tenant.

    >>> owned = {"trace", "job", "span"}
    >>> forgotten("SELECT t.* FROM trace t WHERE t.tenant_id = $1 AND t.id = $2", owned)
    []
    >>> forgotten('SELECT "trace"."id" FROM "trace" WHERE ("trace"."tenant_id" = $1) LIMIT $2', owned)
    []
    >>> forgotten('SELECT "span"."id", "span"."name" FROM "span" WHERE "span"."id" = $1', owned)
    ['span']
    >>> forgotten("SELECT * FROM trace WHERE id = $1", owned)
    ['trace']
    >>> forgotten("UPDATE job SET x = $1 WHERE tenant_id = $2 AND id IN (SELECT id FROM job WHERE lane = $3)", owned)
    ['job']
    >>> forgotten("SELECT * FROM trace t JOIN span s ON s.trace_id = t.id WHERE t.tenant_id = $1", owned)
    ['span']
    >>> forgotten("SELECT * FROM trace t JOIN span s ON s.tenant_id = $1 AND s.trace_id = t.id WHERE t.tenant_id = $1", owned)
    []
    >>> forgotten("SELECT 1 FROM trace WHERE tenant_id = $1 UNION ALL SELECT 2 FROM span", owned)
    ['span']
    >>> forgotten("INSERT INTO job (tenant_id,id) SELECT * FROM UNNEST($1::uuid[],$2::uuid[])", owned)
    []
    >>> forgotten("INSERT INTO job (id) VALUES ($1)", owned)
    ['job']
    >>> forgotten("INSERT INTO job (tenant_id, id) SELECT tenant_id, id FROM trace", owned)
    ['trace']
    >>> forgotten("DELETE FROM span WHERE tenant_id = ANY($1)", owned)
    []
    >>> forgotten("SELECT tenant_id FROM trace WHERE tenant_id <> $1", owned)
    ['trace']
    """
    if re.match(r"(CREATE|ALTER|DROP|COMMENT)\b", statement, re.IGNORECASE):
        return []
    return [name for block in _blocks(statement) for name in _forgotten_in_block(block, owned)]


def _forgotten_in_block(block: str, owned: set) -> list:
    inserted = re.match(r'\s*INSERT INTO "?(\w+)"?\s*\(([^)]*)\)', block, re.IGNORECASE)
    if inserted:
        columns = [it.strip(' "') for it in inserted.group(2).split(",")]
        if inserted.group(1) in owned and "tenant_id" not in columns:
            return [inserted.group(1)]
        block = block[inserted.end():]
    named = []
    for found in _TABLE.finditer(block):
        table = found.group("table")
        if table in owned:
            named.append((table, found.group("alias") or table))
    return [table for table, alias in named if not _compared(block, alias, alone=len(named) == 1)]


def _compared(block: str, alias: str, alone: bool) -> bool:
    """Returns whether the tenant of `alias` is compared with a parameter. The only table may be unqualified."""
    name = rf'(?:"?{alias}"?\.)' + ("?" if alone else "")
    return re.search(rf'(?<![\w."]){name}"?tenant_id"?\s*=\s*(?:ANY\s*\(\s*)?\$\d', block, re.IGNORECASE) is not None


def _blocks(statement: str) -> list:
    """Returns the queries of a statement, each without its subqueries."""
    blocks = []

    def read(at: int) -> tuple:
        """Returns the text from `at` to its closing bracket without subqueries, and the position of the bracket."""
        text = ""
        while at < len(statement) and statement[at] != ")":
            if statement[at] == "(":
                inner, at = read(at + 1)
                if re.match(r"\s*(SELECT|WITH|UPDATE|DELETE|INSERT)\b", inner, re.IGNORECASE):
                    blocks.extend(_alternatives(inner))
                    text += "()"
                else:
                    text += f"({inner})"
            else:
                text += statement[at]
            at += 1
        return text, at

    outer, _ = read(0)
    return _alternatives(outer) + blocks


def _alternatives(text: str) -> list:
    return re.split(r"\bUNION\b(?:\s+ALL\b)?", text, flags=re.IGNORECASE)


def check(log: Path, root: Path) -> tuple:
    """Returns the number of statements that use a table with a tenant, and the problems found."""
    owned = tables(root)
    named = re.compile(rf'\b({"|".join(sorted(owned))})\b')
    statements = [it for it in sent(log) if named.search(it)]
    wrong = []
    for statement in statements:
        if statement in MIGRATION_STATEMENTS | TEST_STATEMENTS or statement.endswith(TEST_STATEMENT_ENDS):
            continue
        if any(it in statement for it in OVER_TENANTS) or _WHOLE_TABLE.fullmatch(statement):
            continue
        missing = forgotten(statement, owned)
        if missing:
            wrong.append(f"no tenant for {', '.join(missing)} in: {statement}")
    return len(statements), wrong
