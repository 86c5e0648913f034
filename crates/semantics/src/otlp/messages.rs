//! Converts messages of frameworks and providers to the form of the GenAI conventions.
//!
//! LangChain, Gemini and Amazon Bedrock each have their own form of roles, texts, tool calls and tool
//! results. All are converted to `role` and `parts`, the form that the rest of the service expects.
//! Messages of OpenAI and Anthropic are supported everywhere and stay as they are, without `null`
//! members.

use super::{
    raw::{self, RawObject},
    text::{clean, push_json_str, readable},
};

/// The role of each message class of LangChain.
const LANGCHAIN_ROLES: &[(&str, &str)] = &[
    ("human", "user"),
    ("HumanMessage", "user"),
    ("ai", "assistant"),
    ("AIMessage", "assistant"),
    ("system", "system"),
    ("SystemMessage", "system"),
    ("tool", "tool"),
    ("ToolMessage", "tool"),
    ("function", "tool"),
    ("FunctionMessage", "tool"),
    ("chat", "user"),
    ("ChatMessage", "user"),
];
/// The member of an Amazon Bedrock content block that identifies its type; a block has only one.
const BEDROCK_BLOCKS: &[&str] = &[
    "text",
    "toolUse",
    "toolResult",
    "reasoningContent",
    "image",
    "document",
    "video",
    "guardContent",
    "cachePoint",
    "citationsContent",
    "interruptResponse",
];

/// A list of messages under construction.
#[derive(Default)]
pub(super) struct MessageList {
    out: String,
    /// Whether the open message has a part already.
    has_parts: bool,
}

impl MessageList {
    /// Returns the list, unless it is empty.
    pub(super) fn finish(mut self) -> Option<String> {
        if self.out.is_empty() {
            return None;
        }
        self.out.push(']');
        Some(readable(clean(self.out)))
    }

    /// Adds a message with these parts: a string, a list of parts, or one part.
    pub(super) fn add(&mut self, role: &str, content: &str) {
        self.open(role);
        self.content(content);
        self.close();
    }

    /// Adds the messages of a list, or one message, in any known form. Plain texts get this role.
    pub(super) fn add_all(&mut self, json: &str, role: &str) {
        match items(json) {
            Some(items) => items.into_iter().for_each(|it| self.add_any(it, role)),
            None => self.add_any(json, role),
        }
    }

    /// Adds a message in any known form. Plain text gets this role.
    pub(super) fn add_any(&mut self, message: &str, role: &str) {
        if let Some(object) = RawObject::parse(message) {
            self.add_object(message, &object);
        } else if let Some([role, content]) = raw::list(message).as_deref()
            && let Some(role) = raw::string(role)
        {
            // LangChain's short form.
            self.add(langchain_role(&role).unwrap_or(&role), content);
        } else {
            self.add(role, message);
        }
    }

    fn add_object(&mut self, message: &str, object: &RawObject<'_>) {
        if object.get("lc").is_some()
            && let Some(fields) = object.object("kwargs")
        {
            let class = object.list("id").and_then(|id| raw::string(id.last()?)).unwrap_or_default();
            return self.add_langchain(&fields, langchain_role(&class).unwrap_or("assistant"));
        }
        let role = object.text("role");
        if role.is_none()
            && object.get("content").is_some()
            && let Some(role) = object.text("type").as_deref().and_then(langchain_role)
        {
            return self.add_langchain(object, role);
        }
        let role = match role.as_deref() {
            Some("model") => "assistant",
            Some(role) => role,
            None => return self.add_whole(message),
        };
        let parts = object.first(&["parts", "blocks"]);
        match (parts, object.get("content")) {
            // The GenAI conventions name the type of each part; Gemini does not.
            (Some(parts), None) if !has_types(parts) => self.add(role, parts),
            (None, Some(content)) if is_bedrock(content) => self.add(role, content),
            _ => self.add_members(object),
        }
    }

    /// Adds a LangChain message from its fields.
    fn add_langchain(&mut self, fields: &RawObject<'_>, role: &str) {
        let content = fields.get("content").unwrap_or("\"\"");
        let role = fields.text("role").unwrap_or_else(|| role.to_owned());
        self.open(&role);
        if role == "tool" {
            let id = fields.text("tool_call_id");
            let name = fields.text("name");
            self.tool_response(id.as_deref(), name.as_deref(), content);
            return self.close();
        }
        self.content(content);
        let says_calls = has_calls(content);
        let calls = fields.list("tool_calls").filter(|it| !it.is_empty());
        let older = || fields.object("additional_kwargs")?.list("tool_calls");
        for call in calls.or_else(older).filter(|_| !says_calls).unwrap_or_default() {
            self.call(call);
        }
        for call in fields.list("invalid_tool_calls").unwrap_or_default() {
            self.call(call);
        }
        self.close();
    }

    /// Adds a message unchanged.
    fn add_whole(&mut self, message: &str) {
        self.separate();
        self.out.push_str(message);
    }

    /// Adds a message without its `null` members.
    fn add_members(&mut self, object: &RawObject<'_>) {
        self.separate();
        let mut comma = '{';
        for (name, value) in object.members() {
            self.out.push(comma);
            push_json_str(&mut self.out, name);
            self.out.push(':');
            self.out.push_str(value);
            comma = ',';
        }
        self.out.push_str(if comma == '{' { "{}" } else { "}" });
    }

    fn separate(&mut self) {
        self.out.push(if self.out.is_empty() { '[' } else { ',' });
    }

    fn open(&mut self, role: &str) {
        self.separate();
        self.out.push_str("{\"role\":");
        push_json_str(&mut self.out, role);
        self.out.push_str(",\"parts\":[");
        self.has_parts = false;
    }

    fn close(&mut self) {
        self.out.push_str("]}");
    }

    /// Begins a part of the open message.
    fn part(&mut self, kind: &str) {
        self.next_part();
        self.out.push_str("{\"type\":");
        push_json_str(&mut self.out, kind);
    }

    fn next_part(&mut self) {
        if std::mem::replace(&mut self.has_parts, true) {
            self.out.push(',');
        }
    }

    fn member(&mut self, name: &str, json: &str) {
        self.out.push(',');
        push_json_str(&mut self.out, name);
        self.out.push(':');
        self.out.push_str(json);
    }

    fn member_text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.out.push(',');
            push_json_str(&mut self.out, name);
            self.out.push(':');
            push_json_str(&mut self.out, text);
        }
    }

    /// Adds content to the open message: a string, a list of parts, or one part.
    fn content(&mut self, content: &str) {
        if let Some(parts) = raw::list(content) {
            parts.into_iter().for_each(|part| self.any_part(part));
        } else if content != "\"\"" && content != "null" {
            self.any_part(content);
        }
    }

    fn text(&mut self, kind: &str, json: &str) {
        self.part(kind);
        self.member("content", json);
        self.out.push('}');
    }

    /// Adds a part in any known form.
    fn any_part(&mut self, json: &str) {
        if json.starts_with('"') {
            return self.text("text", json);
        }
        let Some(part) = RawObject::parse(json) else {
            // A sender's own text, not JSON.
            let mut text = String::new();
            push_json_str(&mut text, json);
            return self.text("text", &text);
        };
        let kind = part.text("type");
        if matches!(kind.as_deref(), Some("tool_use" | "tool_call" | "function")) {
            return self.call(json);
        }
        if kind.as_deref() == Some("tool_result") {
            let id = part.text("tool_use_id");
            return self.tool_response(id.as_deref(), None, part.get("content").unwrap_or("null"));
        }
        if let (Some("thinking"), Some(text)) = (kind.as_deref(), part.get("thinking")) {
            return self.text("reasoning", text);
        }
        if let Some(call) = part.first(&["toolUse", "function_call", "functionCall"]) {
            return self.call(call);
        }
        if let Some(result) = part.object("toolResult") {
            let id = result.text("toolUseId");
            return self.tool_response(id.as_deref(), None, result.get("content").unwrap_or("null"));
        }
        if let Some(result) = ["function_response", "functionResponse"].iter().find_map(|it| part.object(it))
        {
            let (id, name) = (result.text("id"), result.text("name"));
            let response = result.get("response").unwrap_or("null");
            return self.tool_response(id.as_deref(), name.as_deref(), response);
        }
        if let Some(text) =
            part.object("reasoningContent").and_then(|it| it.object("reasoningText")?.get("text"))
        {
            return self.text("reasoning", text);
        }
        let is_text = matches!(kind.as_deref(), None | Some("text" | "input_text" | "output_text"));
        if let (true, Some(text)) = (is_text, part.get("text")) {
            let envelope =
                ["type", "text", "thought", "block_type", "annotations", "citations", "id", "index"];
            if part
                .members()
                .all(|(name, value)| envelope.contains(&name) && (name != "citations" || value == "[]"))
            {
                return self
                    .text(if part.get("thought") == Some("true") { "reasoning" } else { "text" }, text);
            }
        }
        self.next_part();
        self.out.push_str(json);
    }

    /// Adds a tool call, in any known form.
    fn call(&mut self, json: &str) {
        let Some(call) = RawObject::parse(json) else { return };
        let function = call.object("function");
        let named = function.as_ref().unwrap_or(&call);
        let id = call.text("id").or_else(|| call.text("toolUseId"));
        self.part("tool_call");
        self.member_text("id", id.as_deref());
        self.member_text("name", named.text("name").as_deref());
        let arguments = named.first(&["args", "input", "arguments"]).unwrap_or("{}");
        // OpenAI sends the arguments as JSON in a string.
        match raw::string(arguments).filter(|it| RawObject::parse(it).is_some()) {
            Some(object) => self.member("arguments", &object),
            None => self.member("arguments", arguments),
        }
        self.member_text("error", call.text("error").as_deref());
        self.out.push('}');
    }

    fn tool_response(&mut self, id: Option<&str>, name: Option<&str>, response: &str) {
        self.part("tool_call_response");
        self.member_text("id", id);
        self.member_text("name", name);
        match plain_text(response) {
            Some(text) => self.member_text("response", Some(&text)),
            None => self.member("response", response),
        }
        self.out.push('}');
    }
}

/// Converts the messages of a JSON list, or one message, from any known form.
pub(super) fn rewritten(json: &str, role: &str) -> Option<String> {
    let mut list = MessageList::default();
    list.add_all(json, role);
    list.finish()
}

/// Returns the items of a list of messages. LangChain sends batches: lists of lists of messages.
fn items(json: &str) -> Option<Vec<&str>> {
    let items = raw::list(json)?;
    match items.as_slice() {
        [one] => match raw::list(one) {
            // A list that begins with a text is a pair of role and content.
            Some(batch) if !batch.first().is_some_and(|it| it.starts_with('"')) => Some(batch),
            _ => Some(items),
        },
        _ => Some(items),
    }
}

/// Returns whether the JSON is a message, or a list of messages only, in a form that [`rewritten`]
/// converts.
pub(super) fn are_messages(json: &str) -> bool {
    fn is_message(json: &str) -> bool {
        RawObject::parse(json).is_some_and(|it| {
            let content =
                ["content", "parts", "blocks", "tool_calls"].iter().any(|name| it.get(name).is_some());
            (it.get("lc").is_some() && it.object("kwargs").is_some_and(|it| it.get("content").is_some()))
                || (it.get("role").is_some() && content)
                || (it.get("content").is_some()
                    && it.text("type").as_deref().and_then(langchain_role).is_some())
        })
    }
    fn is_pair(json: &str) -> bool {
        matches!(raw::list(json).as_deref(), Some([role, content]) if content.starts_with('"')
            && raw::string(role).is_some_and(|it| langchain_role(&it).is_some() || matches!(it.as_str(), "user" | "assistant")))
    }
    match items(json) {
        Some(items) => !items.is_empty() && items.iter().all(|it| is_message(it) || is_pair(it)),
        None => is_message(json),
    }
}

/// Returns a message of Amazon Bedrock's content blocks, if the JSON is a list of such blocks only.
pub(super) fn of_bedrock(role: &str, json: &str) -> Option<String> {
    is_bedrock(json).then(|| {
        let mut list = MessageList::default();
        list.add(role, json);
        let list = list.finish()?;
        Some(list[1..list.len() - 1].to_owned())
    })?
}

/// Returns the arguments or the result of a tool, if the JSON is one message that holds nothing else.
pub(super) fn of_tool(json: &str) -> Option<String> {
    let message = match raw::list(json)?.as_slice() {
        [message] => RawObject::parse(message)?,
        _ => return None,
    };
    let part = match message.list("parts")?.as_slice() {
        [part] => RawObject::parse(part)?,
        _ => return None,
    };
    let said = match part.text("type")?.as_str() {
        "tool_call" => part.get("arguments")?,
        "tool_call_response" => part.first(&["response", "result"])?,
        _ => return None,
    };
    Some(plain_text(said).unwrap_or_else(|| readable(said.to_owned())))
}

/// Returns the text of a list of one text block, in which Strands and MCP wrap tool results.
pub(super) fn of_block(json: &str) -> Option<String> {
    raw::list(json).filter(|it| it.len() == 1 && it[0].starts_with('{'))?;
    plain_text(json)
}

/// Returns the text of a string or of a list of text blocks.
pub(super) fn plain_text(json: &str) -> Option<String> {
    if let Some(text) = raw::string(json) {
        return Some(clean(text));
    }
    let mut all = String::new();
    for (at, part) in raw::list(json).filter(|it| !it.is_empty())?.into_iter().enumerate() {
        let part = RawObject::parse(part)?;
        if part.members().any(|(name, value)| {
            !(name == "text" || (name == "type" && value == "\"text\"") || matches!(value, "[]" | "{}"))
        }) {
            return None;
        }
        if at > 0 {
            all.push('\n');
        }
        all.push_str(&part.text("text")?);
    }
    Some(clean(all))
}

fn langchain_role(class: &str) -> Option<&'static str> {
    let class = class.strip_suffix("Chunk").unwrap_or(class);
    LANGCHAIN_ROLES.iter().find(|it| it.0 == class).map(|it| it.1)
}

/// Returns whether content parts include calls, which LangChain then repeats beside the content.
fn has_calls(content: &str) -> bool {
    raw::list(content).is_some_and(|parts| {
        parts.iter().any(|part| {
            RawObject::parse(part)
                .and_then(|it| it.text("type"))
                .is_some_and(|it| it == "tool_use" || it == "tool_call")
        })
    })
}

fn has_types(parts: &str) -> bool {
    raw::list(parts).is_some_and(|parts| {
        parts.iter().any(|it| RawObject::parse(it).is_some_and(|it| it.get("type").is_some()))
    })
}

fn is_bedrock(json: &str) -> bool {
    raw::list(json).is_some_and(|blocks| {
        !blocks.is_empty()
            && blocks.iter().all(|block| {
                RawObject::parse(block).is_some_and(|block| {
                    let mut members = block.members();
                    matches!((members.next(), members.next()), (Some((name, _)), None) if BEDROCK_BLOCKS.contains(&name))
                })
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sent: &str, expected: &str) {
        assert_eq!(rewritten(sent, "user").as_deref(), Some(expected), "{sent}");
        assert!(are_messages(sent), "{sent}");
    }

    #[test]
    fn langchain_messages_are_converted_to_roles_and_parts() {
        let human = r#"[{"role":"user","parts":[{"type":"text","content":"Zürich?"}]}]"#;
        check(
            r#"[[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"Z\u00fcrich?","type":"human"}}]]"#,
            human,
        );
        check(r#"[{"content":"Zürich?","additional_kwargs":{},"type":"human","id":"1"}]"#, human);
        check(r#"[["human","Zürich?"]]"#, human);
        let call = r#"[{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f","arguments":{"a":1}}]}]"#;
        check(
            r#"[{"content":"","type":"ai","tool_calls":[{"name":"f","args":{"a":1},"id":"c","type":"tool_call"}],"invalid_tool_calls":[]}]"#,
            call,
        );
        check(
            r#"[{"lc":1,"id":["AIMessageChunk"],"kwargs":{"content":[{"type":"tool_use","id":"c","name":"f","input":{"a":1}}],"tool_calls":[{"name":"f","args":{"a":1},"id":"c"}]}}]"#,
            call,
        );
        check(
            r#"[{"content":"","type":"ai","additional_kwargs":{"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]"#,
            call,
        );
        check(
            r#"[{"content":"sunny","type":"tool","name":"f","tool_call_id":"c","status":"success"}]"#,
            r#"[{"role":"tool","parts":[{"type":"tool_call_response","id":"c","name":"f","response":"sunny"}]}]"#,
        );
    }

    #[test]
    fn gemini_contents_become_roles_and_parts() {
        check(
            r#"[{"parts":[{"text":"hm","thought":true},{"text":"Hi"},{"function_call":{"args":{"a":1},"name":"f"}}],"role":"model"}]"#,
            r#"[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"Hi"},{"type":"tool_call","name":"f","arguments":{"a":1}}]}]"#,
        );
        check(
            r#"[{"parts":[{"functionResponse":{"name":"f","response":{"w":"sunny"}}}],"role":"user"}]"#,
            r#"[{"role":"user","parts":[{"type":"tool_call_response","name":"f","response":{"w":"sunny"}}]}]"#,
        );
    }

    #[test]
    fn bedrock_blocks_become_parts() {
        check(
            r#"[{"role":"assistant","content":[{"text":"Hi"},{"toolUse":{"toolUseId":"c","name":"f","input":{"a":1}}}]}]"#,
            r#"[{"role":"assistant","parts":[{"type":"text","content":"Hi"},{"type":"tool_call","id":"c","name":"f","arguments":{"a":1}}]}]"#,
        );
        assert_eq!(
            of_bedrock(
                "user",
                r#"[{"toolResult":{"toolUseId":"c","status":"success","content":[{"text":"sunny"}]}}]"#
            )
            .as_deref(),
            Some(r#"{"role":"user","parts":[{"type":"tool_call_response","id":"c","response":"sunny"}]}"#)
        );
        for other in ["[]", "text", r#"[{"type":"text","text":"a"}]"#, r#"[{"a":1}]"#, r#"{"text":"a"}"#] {
            assert_eq!(of_bedrock("user", other), None, "{other}");
        }
    }

    #[test]
    fn known_forms_stay_without_null_members() {
        check(
            r#"[{"content":"Hi","refusal":null,"role":"assistant","tool_calls":null}]"#,
            r#"[{"content":"Hi","role":"assistant"}]"#,
        );
        let genai = r#"[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]"#;
        check(genai, genai);
        let anthropic = r#"[{"role":"user","content":[{"type":"text","text":"Hi"}]}]"#;
        check(anthropic, anthropic);
    }

    #[test]
    fn single_tool_part_is_shown_as_arguments_or_result() {
        let part = |part: &str| of_tool(&format!(r#"[{{"role":"tool","parts":[{part}]}}]"#));
        assert_eq!(part(r#"{"type":"tool_call","arguments":{"a":1}}"#).as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(
            part(r#"{"type":"tool_call_response","response":[{"text":"sunny"}]}"#).as_deref(),
            Some("sunny")
        );
        assert_eq!(part(r#"{"type":"text","content":"x"}"#), None);
        assert_eq!(of_tool("sunny"), None);
        assert_eq!(of_block(r#"[{"text": "sunny"}]"#).as_deref(), Some("sunny"));
        for kept in [r#"[{"text":"a","n":1}]"#, r#"[{"text":"a"},{"text":"b"}]"#, r#"["a"]"#, r#""a""#] {
            assert_eq!(of_block(kept), None, "{kept}");
        }
    }
}
