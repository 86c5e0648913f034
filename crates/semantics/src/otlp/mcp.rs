//! The Model Context Protocol: `mcp.method.name`, as defined by the semantic conventions and sent by
//! its SDKs.
//!
//! Both the client and the server report a span for a call; the server's is below the client's. The
//! SDK's client names the tool only in the span's name.

use api::SpanType;

use super::{attributes::Attributes, keys::Key};

/// The method that calls a tool.
const TOOL_CALL_METHOD: &str = "tools/call";

/// Returns `tool` for a tool call; other messages of the protocol have no type.
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
    fn mcp_tool_call_is_a_tool_span_on_both_sides() {
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
