// Serves a small language model at `/v1/chat/completions`, as OpenAI's API does.
//
// Arguments: the file of the model, and the mode. `schemas` enforces `response_format` with a grammar, `prose`
// ignores it. Prints its port when it is ready, and then a line of JSON for each request with the requested format
// and the number of messages.

import http from "node:http";
import { getLlama, LlamaCompletion } from "node-llama-cpp";

const [file, mode] = process.argv.slice(2);
// The model rarely ends its output by itself.
const MAX_TOKENS = 96;
const MAX_TEXT_LENGTH = 80;

// The threads of the library busy-wait for each other, which stalls on a busy processor.
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: 1 });
const model = await llama.loadModel({ modelPath: file });
const context = await model.createContext({ contextSize: 8192, threads: 1 });
const completion = new LlamaCompletion({ contextSequence: context.getSequence() });
const grammars = new Map();
let turn = Promise.resolve();

/** Returns the grammar of a schema, with limited text lengths. */
async function grammarOf(schema) {
    const key = JSON.stringify(schema);
    if (!grammars.has(key)) {
        const properties = Object.entries(schema.properties).map(([name, it]) => [
            name,
            it.type === "string" && !it.enum ? { type: "string", maxLength: MAX_TEXT_LENGTH } : { type: it.type, enum: it.enum },
        ]);
        for (const [, it] of properties) if (it.enum === undefined) delete it.enum;
        grammars.set(key, await llama.createGrammarForJsonSchema({ type: "object", properties: Object.fromEntries(properties) }));
    }
    return grammars.get(key);
}

async function answer(request) {
    const format = request.response_format?.type ?? "none";
    console.log(JSON.stringify({ format, tools: Boolean(request.tools), messages: request.messages.length }));
    const schema = mode === "schemas" && request.response_format?.json_schema?.schema;
    const prompt = request.messages.map((it) => `${it.role}:\n${it.content}\n\n`).join("") + "assistant:\n";
    const tokens = model.tokenize(prompt).slice(-7000);
    const text = await completion.generateCompletion(tokens, {
        temperature: request.temperature ?? 0,
        maxTokens: Math.min(request.max_completion_tokens ?? request.max_tokens ?? MAX_TOKENS, MAX_TOKENS),
        grammar: schema ? await grammarOf(schema) : undefined,
    });
    const used = { prompt_tokens: tokens.length, completion_tokens: model.tokenize(text).length };
    return {
        object: "chat.completion",
        model: request.model,
        choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
        usage: { ...used, total_tokens: used.prompt_tokens + used.completion_tokens },
    };
}

const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    // Sequentially, because one request uses the whole processor.
    const mine = turn.then(() => answer(JSON.parse(body)));
    turn = mine.catch(() => {});
    try {
        const answered = JSON.stringify(await mine);
        response.writeHead(200, { "Content-Type": "application/json" }).end(answered);
    } catch (problem) {
        response.writeHead(500, { "Content-Type": "application/json" }).end(JSON.stringify({ error: { message: String(problem) } }));
    }
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
