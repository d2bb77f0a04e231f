// Requests of every client format with all their fields, and what a hostile client puts in the place of one of them.

const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PICTURE_URL = `data:image/png;base64,${PICTURE}`;
const PDF_URL = "data:application/pdf;base64,JVBERi0=";
const SCHEMA = { type: "object", properties: { a: { type: "string", enum: ["b"] } }, required: ["a"] };

type Member = string | number;

export interface HostileRequest {
  path: string;
  /** The field and what stands there, for messages. */
  what: string;
  body: string;
}

/** Written as it stands, because no value of JavaScript is written so. */
class Raw {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** In a path, for formats whose requests do not name it. */
const MODEL = "{model}";

const GEMINI_REQUEST = {
  systemInstruction: { parts: [{ text: "s" }] },
  contents: [
    {
      role: "user",
      parts: [
        { text: "hi" },
        { inlineData: { mimeType: "image/png", data: PICTURE } },
        { file_data: { mime_type: "image/png", file_uri: "https://h.invalid/a.png" } },
      ],
    },
    {
      role: "model",
      parts: [
        { text: "t", thought: true, thoughtSignature: "c2J4LTE6e30=" },
        { functionCall: { id: "c1", name: "f", args: { a: 1 } }, thoughtSignature: "YQ==" },
      ],
    },
    {
      role: "user",
      parts: [
        {
          functionResponse: {
            id: "c1",
            name: "f",
            response: { output: "ok" },
            parts: [{ inlineData: { data: "QUJD" } }],
          },
        },
      ],
    },
  ],
  tools: [
    {
      functionDeclarations: [
        {
          name: "f",
          description: "d",
          parameters: { type: "OBJECT", properties: { a: { type: "STRING", nullable: true } } },
        },
      ],
    },
  ],
  toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
  generationConfig: {
    temperature: 1,
    topP: 0.5,
    topK: 5,
    candidateCount: 1,
    maxOutputTokens: 5,
    stopSequences: ["x"],
    seed: 1,
    responseMimeType: "application/json",
    responseSchema: { type: "OBJECT", properties: { a: { type: "STRING", enum: ["b"] } }, propertyOrdering: ["a"] },
    thinkingConfig: { includeThoughts: true, thinkingBudget: 100 },
    responseModalities: ["TEXT"],
  },
  safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }],
};

/** By path: what a client may say there, each field with a good value. */
const REQUESTS: Readonly<Record<string, Record<string, unknown>>> = {
  "/v1/chat/completions": {
    messages: [
      { role: "system", content: "s", name: "n" },
      {
        role: "user",
        content: [
          { type: "text", text: "hi" },
          { type: "image_url", image_url: { url: PICTURE_URL, detail: "low" } },
          { type: "input_audio", input_audio: { data: "QUJD", format: "mp3" } },
          { type: "file", file: { filename: "a.pdf", file_data: PDF_URL } },
        ],
      },
      {
        role: "assistant",
        content: null,
        reasoning_content: "r",
        tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "ok" },
    ],
    tools: [{ type: "function", function: { name: "f", description: "d", parameters: SCHEMA, strict: true } }],
    tool_choice: { type: "function", function: { name: "f" } },
    max_tokens: 5,
    max_completion_tokens: 5,
    temperature: 1,
    top_p: 0.5,
    n: 1,
    stop: ["a"],
    seed: 1,
    user: "u",
    metadata: { a: "b" },
    response_format: { type: "json_schema", json_schema: { name: "x", schema: SCHEMA, strict: true } },
    logit_bias: { "1": 1 },
    logprobs: true,
    top_logprobs: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    reasoning_effort: "low",
    parallel_tool_calls: true,
    stream: true,
    stream_options: { include_usage: true },
    service_tier: "auto",
    modalities: ["text"],
    prediction: { type: "content", content: "x" },
    web_search_options: {},
    reasoning: { effort: "low" },
  },
  "/v1/completions": {
    prompt: ["hi"],
    max_tokens: 5,
    suffix: "s",
    echo: false,
    stop: "a",
    n: 1,
    best_of: 1,
    logprobs: 1,
    temperature: 1,
    stream: false,
    user: "u",
  },
  "/v1/messages": {
    max_tokens: 2000,
    system: [{ type: "text", text: "s", cache_control: { type: "ephemeral" } }],
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "hi" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: PICTURE } },
          {
            type: "document",
            title: "t",
            source: { type: "text", media_type: "text/plain", data: "d" },
            citations: { enabled: true },
          },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "t", signature: "s" },
          { type: "tool_use", id: "t1", name: "f", input: { a: 1 } },
        ],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "x" }], is_error: false }],
      },
    ],
    tools: [{ name: "f", description: "d", input_schema: SCHEMA }],
    tool_choice: { type: "auto", disable_parallel_tool_use: true },
    temperature: 1,
    top_p: 0.5,
    top_k: 5,
    stop_sequences: ["x"],
    metadata: { user_id: "u" },
    thinking: { type: "enabled", budget_tokens: 1024 },
    stream: true,
    service_tier: "auto",
  },
  "/v1beta/models/{model}:generateContent": GEMINI_REQUEST,
  "/v1beta/models/{model}:countTokens": { generateContentRequest: { contents: GEMINI_REQUEST.contents } },
  "/v1beta/models/{model}:embedContent": {
    content: { parts: [{ text: "a" }] },
    taskType: "CLUSTERING",
    outputDimensionality: 3,
  },
  "/v1beta/models/{model}:batchEmbedContents": {
    requests: [{ model: "models/m", content: { parts: [{ text: "a" }] }, outputDimensionality: 3 }],
  },
  "/v1/responses": {
    instructions: "i",
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "hi" },
          { type: "input_image", image_url: PICTURE_URL, detail: "low" },
          { type: "input_file", filename: "a.pdf", file_data: PDF_URL },
        ],
      },
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "t" }], encrypted_content: "abc" },
      { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "ok" },
    ],
    tools: [
      { type: "function", name: "f", description: "d", parameters: SCHEMA, strict: false },
      { type: "custom", name: "g", format: { type: "text" } },
    ],
    tool_choice: "auto",
    max_output_tokens: 50,
    temperature: 1,
    top_p: 1,
    text: { format: { type: "json_schema", name: "x", schema: SCHEMA, strict: true }, verbosity: "low" },
    reasoning: { effort: "low", summary: "auto" },
    metadata: { a: "b" },
    store: false,
    stream: true,
    include: ["reasoning.encrypted_content"],
    truncation: "auto",
    user: "u",
    parallel_tool_calls: true,
    prompt_cache_key: "k",
    safety_identifier: "s",
  },
  "/anthropic/v1/messages/count_tokens": {
    messages: [{ role: "user", content: "hi" }],
    system: "s",
    tools: [{ name: "f", input_schema: SCHEMA }],
  },
  "/v1/embeddings": { input: ["a", "b"], dimensions: 1, encoding_format: "float", user: "u" },
  "/v1/rerank": { query: "q", documents: ["a", { text: "b" }], top_n: 1, return_documents: true },
  "/v1/moderations": { input: ["a"] },
  "/v1/images/generations": {
    prompt: "p",
    n: 1,
    size: "1024x1024",
    quality: "standard",
    response_format: "b64_json",
    style: "vivid",
    user: "u",
    background: "auto",
    output_format: "png",
    output_compression: 50,
    moderation: "auto",
  },
  "/v1/audio/speech": {
    input: "hi",
    voice: "alloy",
    response_format: "mp3",
    speed: 1,
    instructions: "x",
    stream_format: "audio",
  },
};

function nested(open: string, close: string): Raw {
  return new Raw(open.repeat(3_000) + close.repeat(3_000));
}

const HOSTILE: Readonly<Record<string, unknown>> = {
  null: null,
  true: true,
  zero: 0,
  "a negative number": -1,
  "the largest number": Number.MAX_VALUE,
  "a number beyond the largest": new Raw("1e400"),
  "minus zero": new Raw("-0"),
  "a fraction": 0.1,
  "a number beyond the safe ones": new Raw("9007199254740993"),
  "an empty text": "",
  NUL: "\0",
  "control characters and a line break": "a\x7fb\r\nx: y",
  "a lone surrogate": "\ud800",
  "marks of direction": "\u202e\ufeff\uffff",
  "a text of 200,000 characters": "x".repeat(200_000),
  __proto__: "__proto__",
  constructor: "constructor",
  toString: "toString",
  "an empty list": [],
  "an empty object": {},
  "a list of null": [null],
  "a list of an object": [{}],
  "members of prototypes": new Raw('{"__proto__":{"a":1},"constructor":{"prototype":{}}}'),
  "3,000 lists in each other": nested("[", "]"),
  "3,000 objects in each other": nested('{"a":[', "]}"),
  "2,000 entries": Array.from({ length: 2_000 }, () => "a"),
  "a link to this machine": "http://127.0.0.1:1/x",
  "a link to a file": "file:///etc/passwd",
  "a data URL without data": "data:image/png;base64,!!!!",
  "an encoded path": "%ff%00../..",
};

/**
 * Each field of each request with these in its place, in turn: `every` fields have had all of them. The models are asked in turn,
 * too.
 */
export function* hostileRequests(models: readonly string[], every = 1): Generator<HostileRequest> {
  let turn = 0;
  let field = 0;
  for (const [path, request] of Object.entries(REQUESTS)) {
    for (const place of placesIn(request)) {
      field++;
      for (const [index, [name, value]] of Object.entries(HOSTILE).entries()) {
        if ((field + index) % every !== 0) continue;
        const model = models[turn++ % models.length] as string;
        const isInPath = path.includes(MODEL);
        const body = written({ ...(!isInPath && { model }), ...(put(request, place, value) as object) });
        yield { path: path.replace(MODEL, model), what: `${model}: ${place.join(".")} is ${name}`, body };
      }
    }
  }
}

function* placesIn(value: unknown, place: readonly Member[] = []): Generator<readonly Member[]> {
  if (place.length > 0) yield place;
  if (value === null || typeof value !== "object") return;
  for (const [key, member] of Object.entries(value)) {
    yield* placesIn(member, [...place, Array.isArray(value) ? Number(key) : key]);
  }
}

function put(value: unknown, [member, ...rest]: readonly Member[], hostile: unknown): unknown {
  if (member === undefined) return hostile;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<Member, unknown>;
  copy[member] = put(copy[member], rest, hostile);
  return copy;
}

function written(value: unknown): string {
  if (value instanceof Raw) return value.text;
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${written(member)}`);
  return `{${members.join(",")}}`;
}
