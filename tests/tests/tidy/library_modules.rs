//! Which module of the library crates may import which; [`crate::modules`] checks the tables.

use crate::{
    modules::{Arrows, violations},
    report,
};

/// The modules of the wire types and of the typed client. The root re-exports the types that most modules use.
const API_MODULES: &[Arrows<'_>] = &[
    ("enums", &[]),
    ("model", &[]),
    ("object", &[]),
    ("page", &[]),
    ("plain", &[]),
    ("text", &[]),
    ("time", &[]),
    ("usage", &[]),
    ("error", &["enums"]),
    ("eval", &["enums", "time"]),
    ("profile", &["plain"]),
    ("", &["enums", "error", "eval", "page", "time", "usage"]),
    ("credential", &["", "enums"]),
    ("evaluator", &["", "enums", "eval"]),
    ("key", &[""]),
    ("member", &["", "enums"]),
    ("metrics", &["", "enums"]),
    ("project", &["", "object"]),
    ("session", &[""]),
    ("trace", &[""]),
    ("trace_filter", &[""]),
    ("anomaly", &["", "enums"]),
    ("audit", &["", "enums", "trace"]),
    ("eval_rule", &["", "enums", "eval", "object", "trace"]),
    ("feedback", &["", "enums", "trace"]),
    ("rejection", &["", "enums"]),
    ("filter", &["", "trace_filter"]),
    ("failure_rule", &["", "eval_rule", "object"]),
    ("failure", &["", "enums", "failure_rule"]),
    ("search", &["", "trace"]),
    ("webhook", &["", "enums"]),
    ("control", &["", "enums", "object"]),
    ("policy", &["", "control", "object"]),
    ("deployment", &["", "enums", "object"]),
    ("tenant", &["", "key"]),
    ("ingest", &["", "object", "search", "trace"]),
    (
        "client",
        &[
            "",
            "anomaly",
            "audit",
            "control",
            "credential",
            "deployment",
            "eval",
            "eval_rule",
            "evaluator",
            "failure",
            "failure_rule",
            "feedback",
            "filter",
            "ingest",
            "key",
            "member",
            "metrics",
            "model",
            "plain",
            "policy",
            "project",
            "rejection",
            "search",
            "session",
            "tenant",
            "trace",
            "webhook",
        ],
    ),
];

/// The modules of the job queue.
const QUEUE_MODULES: &[Arrows<'_>] = &[
    ("concurrency", &[]),
    ("pool", &[]),
    ("job", &["pool"]),
    ("claim", &["job", "pool"]),
    ("wake_ups", &["pool"]),
    ("registry", &["job", "pool", "wake_ups"]),
    ("depth", &["claim", "pool"]),
    ("worker", &["claim", "concurrency", "job", "pool", "registry"]),
    ("", &["claim", "concurrency", "depth", "job", "pool", "registry", "wake_ups"]),
];

/// The modules that give spans and traces their meaning.
const SEMANTICS_MODULES: &[Arrows<'_>] = &[
    ("failure", &[]),
    ("money", &[]),
    ("prices", &[]),
    ("record", &[]),
    ("usage", &[]),
    ("cost", &["money", "prices", "usage"]),
    ("draft", &["record", "usage"]),
    ("rollup", &["money"]),
    ("otlp", &["draft", "failure", "record", "usage"]),
    ("", &[]),
];

/// The modules of the evaluators: texts and patterns below, configs and definitions above, evaluators at the top.
const EVALUATORS_MODULES: &[Arrows<'_>] = &[
    ("budget", &[]),
    ("config_problem", &[]),
    ("plain", &[]),
    ("sentence", &[]),
    ("sentiment", &[]),
    ("verdict", &[]),
    ("language", &["plain"]),
    ("pattern", &["budget", "config_problem"]),
    ("pii", &["plain"]),
    ("redaction", &["pii", "plain"]),
    ("subject", &["verdict"]),
    ("interruption", &["budget", "pattern"]),
    ("schema", &["budget", "config_problem", "pattern", "sentence"]),
    ("target", &["pattern", "subject", "verdict"]),
    ("config", &["config_problem", "schema", "verdict"]),
    ("tool_use", &["schema", "subject", "verdict"]),
    ("code", &["config", "subject", "verdict"]),
    ("form", &["budget", "config", "sentence"]),
    ("judge", &["config", "subject", "verdict"]),
    ("definition", &["code", "config", "judge", "schema"]),
    (
        "builtin",
        &[
            "budget",
            "code",
            "config",
            "definition",
            "form",
            "judge",
            "language",
            "pattern",
            "pii",
            "schema",
            "sentence",
            "sentiment",
            "subject",
            "target",
            "tool_use",
            "verdict",
        ],
    ),
    ("described", &["definition"]),
    (
        "custom",
        &[
            "budget", "builtin", "code", "config", "form", "judge", "pattern", "schema", "sentence",
            "subject", "target", "verdict",
        ],
    ),
    ("", &["code", "config", "definition", "subject", "verdict"]),
];

/// The modules of the outbound HTTP client.
const OUTBOUND_MODULES: &[Arrows<'_>] = &[
    ("address", &[]),
    ("address_owner", &[]),
    ("allow_list", &[]),
    ("error", &[]),
    ("own_listeners", &[]),
    ("resolver", &[]),
    ("tls", &[]),
    ("deadline", &["error"]),
    ("dial", &["error"]),
    ("target", &["address", "error"]),
    ("connection", &["deadline", "error", "target"]),
    ("guard", &["address", "address_owner", "allow_list", "error", "own_listeners", "resolver", "target"]),
    ("remedy", &["address", "error", "target"]),
    ("pool", &["connection"]),
    ("proxy", &["address", "connection", "error", "target"]),
    (
        "connector",
        &["address_owner", "connection", "deadline", "dial", "error", "guard", "proxy", "target", "tls"],
    ),
    (
        "client",
        &[
            "address_owner",
            "allow_list",
            "connection",
            "connector",
            "deadline",
            "error",
            "guard",
            "own_listeners",
            "pool",
            "proxy",
            "resolver",
            "target",
            "tls",
        ],
    ),
    ("", &["address_owner", "allow_list", "client", "error", "tls"]),
];

/// The modules of failure clustering.
const CLUSTERING_MODULES: &[Arrows<'_>] = &[
    ("mask", &[]),
    ("samples", &[]),
    ("unwrap", &["mask"]),
    ("words", &["mask"]),
    ("align", &["words"]),
    ("template", &["align", "mask", "unwrap", "words"]),
    ("cluster_set", &["align", "mask", "template", "words"]),
    ("", &["cluster_set", "mask", "samples", "template", "unwrap", "words"]),
];

/// The modules of experiments.
const EXPERIMENTS_MODULES: &[Arrows<'_>] = &[
    ("sample", &[]),
    ("comparison", &["sample"]),
    ("decision", &["comparison", "sample"]),
    ("watch", &["comparison", "sample"]),
    ("", &["comparison", "decision", "sample", "watch"]),
];

/// The modules of anomaly detection.
const ANOMALIES_MODULES: &[Arrows<'_>] = &[
    ("anomaly", &[]),
    ("metric", &[]),
    ("point", &[]),
    ("robust", &[]),
    ("window", &[]),
    ("calibration", &["anomaly"]),
    ("evidence", &["anomaly", "metric", "window"]),
    ("baseline", &["evidence", "metric", "point", "robust", "window"]),
    ("detector", &["anomaly", "baseline", "calibration", "evidence", "metric", "point", "window"]),
    ("", &["anomaly", "detector", "metric", "point"]),
];

/// The modules of the store, from the lowest layer to the highest. Tables that are written in bulk are below the
/// features of the store that use them.
const STORE_MODULES: &[Arrows<'_>] = &[
    ("health", &[]),
    ("ids", &[]),
    ("jobs", &[]),
    ("memory", &[]),
    ("page", &[]),
    ("row_text", &[]),
    ("bulk", &[]),
    ("trace_filters", &[]),
    ("trace_index::entry", &[]),
    ("trace_index::directories", &["trace_index::entry"]),
    ("trace_index::growth", &[]),
    ("trace_index::keys", &["ids"]),
    ("db", &["health", "trace_index::directories", "trace_index::growth", "trace_index::keys"]),
    ("trace_ids", &["db"]),
    ("trace_index", &["bulk", "db", "trace_filters", "trace_index::entry"]),
    ("error", &["health", "memory"]),
    ("housekeeping", &["db"]),
    ("audit", &["page"]),
    ("backup", &["db"]),
    ("bulk_runs", &["housekeeping"]),
    ("credentials", &[]),
    ("evaluators", &[]),
    ("idempotency", &["housekeeping"]),
    ("prices", &[]),
    ("eval_rules", &["db", "page"]),
    ("tenants", &["eval_rules"]),
    ("keys", &["page", "tenants"]),
    ("members", &["page"]),
    ("projects", &["db", "housekeeping", "page"]),
    ("quotas", &["ids"]),
    ("rates", &["db", "housekeeping"]),
    ("rejected_input", &["housekeeping", "page"]),
    ("held_input", &["bulk", "db", "housekeeping", "ids"]),
    ("sealed", &["db"]),
    ("settings", &["ids"]),
    ("sizes", &["db"]),
    ("span_block", &["ids"]),
    ("text_block", &["ids"]),
    ("text_page", &["ids"]),
    ("text_rows", &["bulk", "db", "text_page"]),
    ("evaluations", &["db", "ids", "page", "quotas"]),
    ("failure_rules", &["housekeeping", "page"]),
    (
        "vectors",
        &[
            "bulk",
            "db",
            "housekeeping",
            "ids",
            "row_text",
            "span_block",
            "text_block",
            "text_rows",
            "trace_ids",
        ],
    ),
    ("metrics", &["bulk", "db", "housekeeping", "ids", "trace_filters", "trace_ids", "trace_index"]),
    ("webhooks", &["db", "housekeeping", "page"]),
    (
        "traces",
        &[
            "audit",
            "bulk",
            "db",
            "error",
            "evaluations",
            "held_input",
            "ids",
            "jobs",
            "memory",
            "metrics",
            "quotas",
            "span_block",
            "text_block",
            "text_page",
            "text_rows",
            "trace_filters",
            "trace_ids",
            "trace_index",
            "trace_index::keys",
            "vectors",
        ],
    ),
    ("feedback", &["db", "metrics", "page", "row_text", "traces"]),
    ("anomalies", &["db", "housekeeping", "metrics", "page"]),
    ("policies", &["page"]),
    ("control_actions", &["db", "ids"]),
    ("prompts", &[]),
    ("prompt_tests", &["db", "housekeeping", "traces"]),
    ("failures", &["db", "ids", "traces"]),
    ("failure_clusters", &["housekeeping", "page", "traces"]),
    (
        "check",
        &[
            "bulk",
            "db",
            "metrics",
            "quotas",
            "span_block",
            "text_rows",
            "trace_filters",
            "trace_ids",
            "trace_index",
            "trace_index::entry",
            "traces",
        ],
    ),
    // What other crates use of the store without naming its module.
    ("", &["db", "error", "ids", "jobs", "memory"]),
];

/// The modules of the crate that command line and console share.
const PRESENT_MODULES: &[Arrows<'_>] = &[
    ("csv", &[]),
    ("format", &[]),
    ("glyphs", &[]),
    ("share", &[]),
    ("text", &["glyphs"]),
    ("diff", &["text"]),
    ("tone", &[]),
    ("tree", &[]),
    ("chart", &["glyphs"]),
    ("evaluation", &["glyphs", "tone"]),
    ("waterfall", &["format"]),
    ("", &["glyphs", "tone"]),
];

#[test]
fn modules_of_the_store_import_what_their_table_allows() {
    report(violations("store", STORE_MODULES));
}

#[test]
fn modules_of_present_import_what_their_table_allows() {
    report(violations("present", PRESENT_MODULES));
}

#[test]
fn modules_of_the_api_import_what_their_table_allows() {
    report(violations("api", API_MODULES));
}

#[test]
fn modules_of_the_queue_import_what_their_table_allows() {
    report(violations("queue", QUEUE_MODULES));
}

#[test]
fn modules_of_semantics_import_what_their_table_allows() {
    report(violations("semantics", SEMANTICS_MODULES));
}

#[test]
fn modules_of_the_evaluators_import_what_their_table_allows() {
    report(violations("evaluators", EVALUATORS_MODULES));
}

#[test]
fn modules_of_outbound_import_what_their_table_allows() {
    report(violations("outbound", OUTBOUND_MODULES));
}

#[test]
fn modules_of_clustering_import_what_their_table_allows() {
    report(violations("clustering", CLUSTERING_MODULES));
}

#[test]
fn modules_of_experiments_import_what_their_table_allows() {
    report(violations("experiments", EXPERIMENTS_MODULES));
}

#[test]
fn modules_of_anomalies_import_what_their_table_allows() {
    report(violations("anomalies", ANOMALIES_MODULES));
}
