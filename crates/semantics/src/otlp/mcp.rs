//! The Model Context Protocol: `mcp.method.name`, as the semantic conventions and its SDKs send it.
//!
//! Both the client and the server report a span for a call, the server's below the client's. The SDK's
//! client names the tool in the span's name only.

use api::SpanType;

use super::{attributes::Attributes, keys::Key};

/// The method that calls a tool.
const TOOL_CALL_METHOD: &str = "tools/call";

/// A tool call is a tool span; other messages of the protocol are not.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    let method = attributes.str(Key::McpMethod)?;
    Some(if method == TOOL_CALL_METHOD { SpanType::Tool } else { SpanType::Other })
}

/// Extracts the tool from the name of a call's span: `[MCP send ]tools/call <tool>`.
pub(super) fn tool_name(attributes: &Attributes, name: &str) -> Option<String> {
    if attributes.str(Key::McpMethod) != Some(TOOL_CALL_METHOD) {
        return None;
    }
    let (_, tool) = name.split_once(TOOL_CALL_METHOD)?;
    let tool = tool.trim();
    (!tool.is_empty()).then(|| tool.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn calls_of_tools_are_tools_on_both_sides() {
        let call = attributes(&[("mcp.method.name", "tools/call")]);
        assert_eq!(kind(&call), Some(SpanType::Tool));
        assert_eq!(tool_name(&call, "MCP send tools/call add").as_deref(), Some("add"));
        assert_eq!(tool_name(&call, "tools/call add").as_deref(), Some("add"));
        assert_eq!(tool_name(&call, "tools/call"), None);
        let list = attributes(&[("mcp.method.name", "tools/list")]);
        assert_eq!((kind(&list), tool_name(&list, "tools/list")), (Some(SpanType::Other), None));
        assert_eq!(kind(&attributes(&[])), None);
    }
}
