//! Numbers and times at and beyond their bounds.

use serde_json::json;
use tests::on_both_databases;

use super::{NoJson, NotAllowed, Stored, Verdict, WrongShape, check_all};

on_both_databases! {
    async fn extreme_whole_numbers_are_validated(app: TestApp) {
        let numbers = [
            ("0", Stored), ("1", Stored), ("9223372036854775807", Stored), ("-1", NotAllowed), ("-9223372036854775808", NotAllowed),
            ("9223372036854775808", WrongShape), ("-9223372036854775809", WrongShape), ("18446744073709551616", WrongShape),
            ("1.0", WrongShape), ("1e3", WrongShape), ("-0", WrongShape), ("1e400", NoJson), ("-1e400", NoJson), ("01", NoJson),
            ("+1", NoJson), (".5", NoJson), ("1.", NoJson), ("0x10", NoJson), ("NaN", NoJson), ("Infinity", NoJson), ("--1", NoJson),
            ("1_000", NoJson),
        ];
        let places = [
            r#"{"latency_ms":@}"#, r#"{"spans":[{"name":"s","latency_ms":@}]}"#, r#"{"spans":[{"name":"s","prompt_tokens":@}]}"#,
            r#"{"spans":[{"name":"s","completion_tokens":@}]}"#,
            r#"{"spans":[{"name":"s","type":"llm","model":"gpt-4o","prompt_tokens":@,"completion_tokens":@},{"name":"t","prompt_tokens":@}]}"#,
            r#"{"started_at":"9999-12-31T23:59:59Z","latency_ms":@,"spans":[{"name":"s","latency_ms":@}]}"#,
            r#"{"ended_at":"0001-01-01T00:00:00Z","latency_ms":@,"spans":[{"name":"s","latency_ms":@,"end_time":"0001-01-01T00:00:00Z"}]}"#,
        ];
        let cases = places.iter().flat_map(|place| numbers.map(|(number, verdict)| (place.replace('@', number), verdict)));
        check_all(app, cases.collect()).await;
        // The largest sums are shown and can be used as filters.
        let key = app.full_key();
        let list = key.get("/v1/traces?token_count_min=9223372036854775807").await.ok();
        assert!(!list["traces"].as_array().unwrap().is_empty());
        key.get("/v1/traces?latency_min=9223372036854775807&latency_max=9223372036854775807").await.ok();
    }

    async fn extreme_amounts_of_money_are_validated(app: TestApp) {
        let numbers = [
            ("0", Stored), ("0.0", Stored), ("-0.0", Stored), ("-0", Stored), ("1e-30", Stored), ("5e-324", Stored), ("1000000", Stored),
            ("1e6", Stored), ("1000000.01", NotAllowed), ("-1e-9", NotAllowed), ("-1", NotAllowed), ("1e308", NotAllowed),
            ("9223372036854775807", NotAllowed), ("123456789012345678901234567890", NotAllowed), ("1e400", NoJson), ("NaN", NoJson),
        ];
        let places = [r#"{"cost":@}"#, r#"{"spans":[{"name":"s","cost":@}]}"#];
        let mut cases: Vec<_> = places.iter().flat_map(|place| numbers.map(|(number, verdict)| (place.replace('@', number), verdict))).collect();
        // Costs in metadata are not validated; the server uses them where they make sense.
        for number in ["0", "-1", "1e308", "\"0.5\"", "\"NaN\"", "\"inf\"", "null", "[]", "{}", "true", "\"\""] {
            cases.push((format!(r#"{{"spans":[{{"name":"s","type":"llm","metadata":{{"cost_usd":{number}}}}}]}}"#), Stored));
        }
        cases.push((r#"{"metadata":{"n":1e400}}"#.to_owned(), WrongShape));
        cases.push((r#"{"metadata":{"n":[1e308,-0,123456789012345678901234567890,0.1e-400]}}"#.to_owned(), Stored));
        let dear = json!({"name": "s", "cost": 1_000_000});
        cases.push((json!({"spans": vec![dear; 20]}).to_string(), Stored));
        check_all(app, cases).await;
        app.full_key().get("/v1/traces?min_cost=1000000").await.ok();
    }

    async fn extreme_times_are_validated(app: TestApp) {
        let times: [(&str, Verdict); 35] = [
            ("0001-01-01T00:00:00Z", Stored), ("9999-12-31T23:59:59.999999Z", Stored), ("9999-12-31T23:59:59.999999999Z", Stored),
            ("1969-12-31T23:59:59.999999Z", Stored), ("1970-01-01T00:00:00Z", Stored), ("2024-02-29T12:00:00Z", Stored),
            ("2026-06-15T12:00:00+14:00", Stored), ("2026-06-15T12:00:00-12:00", Stored), ("2026-06-15T12:00:00.1Z", Stored),
            ("2026-06-15t12:00:00z", Stored), ("2026-06-15T12:00:00.123456789123Z", Stored), ("2016-12-31T23:59:60Z", Stored),
            ("0000-12-31T23:59:59Z", WrongShape), ("0000-01-01T00:00:00Z", WrongShape), ("10000-01-01T00:00:00Z", WrongShape),
            ("+10000-01-01T00:00:00Z", WrongShape), ("-0001-01-01T00:00:00Z", WrongShape), ("0001-01-01T00:00:00+01:00", WrongShape),
            ("9999-12-31T23:59:59-01:00", WrongShape), ("2026-02-29T12:00:00Z", WrongShape), ("2026-13-01T00:00:00Z", WrongShape),
            ("2026-06-31T00:00:00Z", WrongShape), ("2026-06-15T24:00:00Z", WrongShape), ("2026-06-15T12:60:00Z", WrongShape),
            ("2026-06-15T12:00:00", WrongShape), ("2026-06-15", WrongShape), ("12:00:00Z", WrongShape), ("2026-06-15T12:00:00+25:00", WrongShape),
            ("now", WrongShape), ("", WrongShape), (" 2026-06-15T12:00:00Z", WrongShape), ("1781524800", WrongShape),
            ("2026-6-15T12:00:00Z", WrongShape), ("2026-06-15T12:00:00\u{ff3a}", WrongShape), ("\u{661}026-06-15T12:00:00Z", WrongShape),
        ];
        let places = [
            r#"{"started_at":"@"}"#, r#"{"ended_at":"@"}"#, r#"{"ended_at":"@","latency_ms":86400000}"#, r#"{"started_at":"@","ended_at":"@"}"#,
            r#"{"spans":[{"name":"s","start_time":"@"}]}"#, r#"{"spans":[{"name":"s","end_time":"@","latency_ms":5}]}"#,
            r#"{"spans":[{"name":"s","start_time":"0001-01-01T00:00:00Z"},{"name":"s","end_time":"@"}]}"#,
        ];
        let mut cases: Vec<_> = places.iter().flat_map(|place| times.map(|(time, verdict)| (place.replace('@', time), verdict))).collect();
        let (early, late) = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z");
        cases.extend([
            (json!({"started_at": early, "ended_at": late}).to_string(), Stored),
            (json!({"started_at": late, "ended_at": early}).to_string(), NotAllowed),
            (json!({"spans": [{"name": "s", "start_time": late, "end_time": early}]}).to_string(), NotAllowed),
            (json!({"spans": [{"name": "s", "start_time": early, "end_time": late}, {"name": "s", "start_time": late}]}).to_string(), Stored),
        ]);
        check_all(app, cases).await;
    }
}
