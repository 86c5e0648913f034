// Sends one trace of an LLM application with the standard OpenTelemetry SDK and prints its id.
//
// The receiver is configured with the standard variables OTEL_EXPORTER_OTLP_ENDPOINT,
// OTEL_EXPORTER_OTLP_PROTOCOL (http/protobuf or http/json) and OTEL_EXPORTER_OTLP_HEADERS.

import { SpanKind, trace } from "@opentelemetry/api";
import { NodeSDK } from "@opentelemetry/sdk-node";

const QUESTION = "Which paper introduced the transformer?";
const ANSWER = "Attention Is All You Need.";

const sdk = new NodeSDK({ serviceName: "sdk-javascript", instrumentations: [] });
sdk.start();
const tracer = trace.getTracer("loupe.tests.sdk");

const traceId = tracer.startActiveSpan("invoke_agent librarian", (agent) => {
  agent.setAttribute("gen_ai.operation.name", "invoke_agent");
  agent.setAttribute("gen_ai.conversation.id", "sdk-javascript-session");
  tracer.startActiveSpan("execute_tool search", (tool) => {
    tool.setAttribute("gen_ai.operation.name", "execute_tool");
    tool.setAttribute("gen_ai.tool.name", "search");
    tool.end();
  });
  tracer.startActiveSpan("chat gpt-4o", { kind: SpanKind.CLIENT }, (chat) => {
    chat.setAttributes({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "gpt-4o",
      "gen_ai.response.model": "gpt-4o-2024-08-06",
      "gen_ai.response.id": "sdk-javascript-1",
      "gen_ai.usage.input_tokens": 120,
      "gen_ai.usage.output_tokens": 30,
      "gen_ai.input.messages": JSON.stringify([{ role: "user", parts: [{ type: "text", content: QUESTION }] }]),
      "gen_ai.output.messages": JSON.stringify([{ role: "assistant", parts: [{ type: "text", content: ANSWER }] }]),
    });
    chat.end();
  });
  agent.end();
  return agent.spanContext().traceId;
});

// Waits for the last batch; without it the process may end first.
await sdk.shutdown();
console.log(traceId);
