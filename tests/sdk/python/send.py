"""Sends one trace of an LLM application with the standard OpenTelemetry SDK and prints its id.

The receiver is configured with the standard variables OTEL_EXPORTER_OTLP_ENDPOINT and
OTEL_EXPORTER_OTLP_HEADERS; the exporter uses protobuf over HTTP.
"""

import json

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

QUESTION = "Which paper introduced the transformer?"
ANSWER = "Attention Is All You Need."

provider = TracerProvider(resource=Resource.create({"service.name": "sdk-python"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("loupe.tests.sdk")

with tracer.start_as_current_span("invoke_agent librarian") as agent:
    agent.set_attribute("gen_ai.operation.name", "invoke_agent")
    agent.set_attribute("gen_ai.conversation.id", "sdk-python-session")
    with tracer.start_as_current_span("execute_tool search") as tool:
        tool.set_attribute("gen_ai.operation.name", "execute_tool")
        tool.set_attribute("gen_ai.tool.name", "search")
    with tracer.start_as_current_span("chat gpt-4o", kind=trace.SpanKind.CLIENT) as chat:
        chat.set_attributes({
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.response.model": "gpt-4o-2024-08-06",
            "gen_ai.response.id": "sdk-python-1",
            "gen_ai.usage.input_tokens": 120,
            "gen_ai.usage.output_tokens": 30,
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]),
        })

# Waits for the last batch; without it the process may end first.
provider.shutdown()
print(trace.format_trace_id(agent.get_span_context().trace_id))
