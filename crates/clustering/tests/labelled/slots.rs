//! Values of slots. Pools of words are divided into halves like the templates.

use super::{Half, Random};

/// Replaces the slots of a template by random values.
pub fn fill(template: &str, half: Half, random: &mut Random) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let name = after.find('}').map(|end| &after[..end]);
        match name.and_then(|it| value(it, half, random).map(|value| (it, value))) {
            Some((name, value)) => {
                filled.push_str(&value);
                rest = &after[name.len() + 1..];
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled + rest
}

const MODEL_POOL: &[&str] = &[
    "gpt-4o",
    "claude-sonnet-4-5-20250929",
    "gpt-4o-mini-2024-07-18",
    "mistral-large-latest",
    "gemini-2.5-flash",
    "llama3.1:8b",
    "o3-mini",
    "command-r-plus",
    "gpt-5-nano",
    "claude-3-5-haiku-20241022",
    "text-embedding-3-small",
    "deepseek-chat",
    "gemini-1.5-pro-002",
    "mixtral:8x7b-instruct",
    "anthropic.claude-3-sonnet-20240229-v1:0",
    "qwen2.5-coder",
];
const TOOL_POOL: &[&str] = &[
    "get_weather",
    "search",
    "run_sql",
    "sendEmail",
    "lookup_customer",
    "calculator",
    "fetch_page",
    "createTicket",
    "list_orders",
    "translate",
    "book_flight",
    "readFile",
    "python",
    "search_documents",
    "cancel_subscription",
    "web-search",
];
const FIELD_POOL: &[&str] = &[
    "temperature",
    "city",
    "max_tokens",
    "customer_id",
    "orders",
    "faithfulness",
    "response_format",
    "embedding",
    "messages",
    "top_p",
    "documents",
    "userName",
    "items",
    "start_date",
    "content",
    "reasoning_effort",
];
const CLASS_POOL: &[&str] = &[
    "Weather",
    "CustomerProfile",
    "OrderList",
    "datetime",
    "TriageAgent",
    "ResearchPlan",
    "InvoiceData",
    "Decimal",
    "BookingRequest",
    "SummaryAgent",
    "AnswerWithSources",
    "ObjectId",
];
const WORD_POOL: &[&str] = &[
    "alpha",
    "assistant",
    "twelve",
    "violence",
    "admin",
    "n/a",
    "yesterday",
    "critic",
    "user",
    "unknown",
    "hate",
    "seven",
    "postgres",
    "planner",
    "maybe",
    "tool",
];
const USER_POOL: &[&str] = &[
    "root",
    "cyrus",
    "alice",
    "deploy",
    "news",
    "backup",
    "mkowalski",
    "oracle",
    "www-data",
    "jsmith",
    "test",
    "nagios",
    "git",
    "hbase",
    "guest",
    "student",
];
const HOST_POOL: &[&str] = &[
    "api.openai.com",
    "db-primary.internal",
    "proxy.cse.example.edu",
    "qdrant.prod.svc.cluster.local",
    "mail.example.net",
    "node-17.rack3.example.com",
    "api.anthropic.com",
    "redis-master",
    "vectors.eu.example.io",
    "gateway.example.org",
    "ec2-3-120-4-7.eu-central-1.compute.amazonaws.com",
    "localhost",
];
const TEXT_POOL: &[&str] = &[
    "I could not find any open orders for this customer",
    "The weather in Paris is sunny and 23 degrees",
    "Sure! Here is the plan you asked for",
    "As an AI model I am unable to do that",
    "upstream returned an empty body",
    "Action: search\nAction Input: cheap flights to Oslo",
    "no such column: price_eur",
    "Let me think about this step by step",
    "The total is 42.50 EUR",
    "Bonjour, votre commande est en route",
    "connection pool exhausted after waiting",
    "Yes",
    "{\"city\": \"Berlin\", \"days\": 3",
    "quarterly revenue of the northern region",
    "How do I reset my password?",
    "It depends on what you mean by that",
    "unexpected indent in line four",
    "Thank you for contacting us, we will be in touch soon",
    "1. Buy milk 2. Call Anna 3. Sleep",
    "refund policy for damaged goods",
];
const MODULE_POOL: &[&str] =
    &["tiktoken", "langchain_openai", "torch", "pandas.io", "faiss", "app.tools", "bs4", "yaml"];
const PATH_POOL: &[&str] = &[
    "/data/docs/report-{n}.pdf",
    "/var/lib/app/cache/{n}/index",
    "/home/alice/project/config.yaml",
    "/tmp/upload-{n}.docx",
    "/etc/httpd/conf/workers2.properties",
    "/mnt/share/handbook.md",
    "/user/root/rand/_temporary/part-{n}",
    "C:\\Users\\anna\\Documents\\plan.xlsx",
];

fn value(name: &str, half: Half, random: &mut Random) -> Option<String> {
    Some(match name {
        "model" => pick(MODEL_POOL, half, random),
        "tool" => pick(TOOL_POOL, half, random),
        "field" => pick(FIELD_POOL, half, random),
        "class" => pick(CLASS_POOL, half, random),
        "word" => pick(WORD_POOL, half, random),
        "user" => pick(USER_POOL, half, random),
        "host" => pick(HOST_POOL, half, random),
        "text" => pick(TEXT_POOL, half, random),
        "module" => pick(MODULE_POOL, half, random),
        "path" => pick(PATH_POOL, half, random).replace("{n}", &random.below(9999).to_string()),
        "int" => integer(random).to_string(),
        "dec" => format!("{}.{}", random.below(400), random.below(1000)),
        "status" => random.choose(&["403", "404", "500", "503"]).to_owned(),
        "http4" => random.choose(&["404 Not Found"]).to_owned(),
        "http5" => random.choose(&["502 Bad Gateway"]).to_owned(),
        "duration" => duration(random),
        "org" => format!("org-{}", token(random, 24)),
        "key" => format!("sk-{}****{}", token(random, 4), token(random, 4)),
        "req" => format!("req_{}", hex(random, 24)),
        "call" => format!("{}{}", random.choose(&["call_", "toolu_01"]), token(random, 22)),
        "id" => format!("{}_{}", random.choose(&["resp", "gr", "container"]), hex(random, 20)),
        "hex2" => hex(random, 2),
        "hex4" => hex(random, 4),
        "hex8" => hex(random, 8),
        "hex10" => hex(random, 10).to_uppercase(),
        "hex32" => hex(random, 32),
        "addr" => format!("0x7f{}", hex(random, 10)),
        "uuid" => {
            format!(
                "{}-{}-4{}-a{}-{}",
                hex(random, 8),
                hex(random, 4),
                hex(random, 3),
                hex(random, 3),
                hex(random, 12)
            )
        }
        "blk" => format!("blk_{}{}", random.choose(&["", "-"]), random.next()),
        "node" => {
            format!("{}-{}", random.choose(&["R02-M1-N0", "worker", "api-7d9f", "ioNode"]), random.below(40))
        }
        "ip" => format!(
            "{}.{}.{}.{}",
            1 + random.below(250),
            random.below(250),
            random.below(250),
            random.below(250)
        ),
        "url" => format!(
            "https://{}/{}/{}",
            random.choose(&["example.com", "cdn.example.net", "api.example.org:8443"]),
            random.choose(&["v1/images", "files", "hooks/chat"]),
            token(random, 8)
        ),
        "urlpath" => format!(
            "/v1/{}",
            random.choose(&["embeddings", "chat/completions", "files?limit=10", "collections/docs"])
        ),
        "email" => format!(
            "{}{}@{}",
            random.choose(&["anna", "li.wei", "sam+test"]),
            random.below(90),
            random.choose(&["example.com", "mail.example.org"])
        ),
        "arn" => format!(
            "arn:aws:iam::{}:{}/{}",
            100_000_000_000 + random.next() % 899_999_999_999,
            random.choose(&["role", "user"]),
            token(random, 9)
        ),
        "gcp" => format!(
            "projects/{}-{}/locations/us-central1/publishers/google/models/gemini-1.{}",
            random.choose(&["acme", "shop"]),
            random.below(999),
            random.below(9)
        ),
        "metric" => random
            .choose(&[
                "generate_content_free_tier_requests",
                "online_prediction_requests_per_base_model",
                "embed_content_requests",
            ])
            .to_owned(),
        "tier" => random.choose(&["S0", "F0"]).to_owned(),
        "json" => format!(
            "{{\"{}\": {}, \"{}\": \"{}\"}}",
            pick(FIELD_POOL, half, random),
            random.below(99),
            pick(FIELD_POOL, half, random),
            pick(WORD_POOL, half, random)
        ),
        "path_field" => match random.below(3) {
            0 => format!("messages[{}].content", random.below(40)),
            1 => format!("tools[{}].function", random.below(9)),
            _ => pick(FIELD_POOL, half, random),
        },
        "command" => format!("['python', '-m', '{}']", pick(MODULE_POOL, half, random)),
        "letter" => random.choose(&["H", "I", "<", "T"]).to_owned(),
        "date" => format!("202{}-{:02}-{:02}", random.below(6), 1 + random.below(12), 1 + random.below(28)),
        "timestamp" => format!(
            "2026-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            1 + random.below(12),
            1 + random.below(28),
            random.below(24),
            random.below(60),
            random.below(60)
        ),
        "clock" => random.choose(&["<1 sec", "00:21", "01:12:05", "03:44"]).to_owned(),
        _ => return None,
    })
}

/// Returns a value of the half of a pool.
fn pick(pool: &[&str], half: Half, random: &mut Random) -> String {
    let middle = pool.len() / 2;
    random.choose(if half == Half::Development { &pool[..middle] } else { &pool[middle..] }).to_owned()
}

fn integer(random: &mut Random) -> u64 {
    let bound = [10, 100, 5_000, 200_000][random.below(4)];
    random.next() % bound
}

fn duration(random: &mut Random) -> String {
    match random.below(4) {
        0 => format!("{}ms", 1 + random.below(999)),
        1 => format!("{}.{}s", random.below(60), random.below(1000)),
        2 => format!("{}m{}.{}s", 1 + random.below(9), random.below(60), random.below(1000)),
        _ => format!("{}s", 1 + random.below(60)),
    }
}

fn hex(random: &mut Random, length: usize) -> String {
    (0..length).map(|_| char::from(b"0123456789abcdef"[random.below(16)])).collect()
}

fn token(random: &mut Random, length: usize) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    (0..length).map(|_| char::from(letters[random.below(62)])).collect()
}
