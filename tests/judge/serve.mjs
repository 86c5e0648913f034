// Serves a small language model at `/v1/chat/completions`, as OpenAI's API does.
//
// Takes the file of the model, and `schemas` or `prose`: whether `response_format` is obeyed (as a
// grammar) or ignored. Prints its port when it is ready, and then a line of JSON for each request:
// what form was asked for and how many messages there were.

import http from "node:http";
import { getLlama, LlamaCompletion } from "node-llama-cpp";

const [file, manner] = process.argv.slice(2);
// The model is too small to come to an end by itself.
const MOST_TOKENS = 96;
const LONGEST_TEXT = 80;

// Threads of the library that wait for each other spin; with a busy processor they never get on.
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: 1 });
const model = await llama.loadModel({ modelPath: file });
const context = await model.createContext({ contextSize: 8192, threads: 1 });
const completion = new LlamaCompletion({ contextSequence: context.getSequence() });
const grammars = new Map();
let turn = Promise.resolve();

/** The grammar of a schema whose texts are short. */
async function grammarOf(schema) {
    const key = JSON.stringify(schema);
    if (!grammars.has(key)) {
        const properties = Object.entries(schema.properties).map(([name, it]) => [
            name,
            it.type === "string" && !it.enum ? { type: "string", maxLength: LONGEST_TEXT } : { type: it.type, enum: it.enum },
        ]);
        for (const [, it] of properties) if (it.enum === undefined) delete it.enum;
        grammars.set(key, await llama.createGrammarForJsonSchema({ type: "object", properties: Object.fromEntries(properties) }));
    }
    return grammars.get(key);
}

async function answer(request) {
    const format = request.response_format?.type ?? "none";
    console.log(JSON.stringify({ format, tools: Boolean(request.tools), messages: request.messages.length }));
    const schema = manner === "schemas" && request.response_format?.json_schema?.schema;
    const prompt = request.messages.map((it) => `${it.role}:\n${it.content}\n\n`).join("") + "assistant:\n";
    const tokens = model.tokenize(prompt).slice(-7000);
    const text = await completion.generateCompletion(tokens, {
        temperature: request.temperature ?? 0,
        maxTokens: Math.min(request.max_completion_tokens ?? request.max_tokens ?? MOST_TOKENS, MOST_TOKENS),
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
    // One after the other: the processor has no use for more.
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
