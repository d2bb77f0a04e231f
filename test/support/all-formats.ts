// A backend of every kind in one: each operation is answered well in the format of its path, whole or as a stream.

import type { Answer, RecordedRequest } from "./fake-backend.ts";
import { chat, chatStream, completion, eventStream, sseEvent } from "./openai-answers.ts";

const CREATED = 1_763_700_000;
const PICTURE = "QUJD";

const json = (value: unknown): Answer => ({
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(value),
});

const typed = (events: readonly { type: string }[]): Answer =>
  eventStream(events.map((event) => `event: ${event.type}\n${sseEvent(event)}`));

const MESSAGE = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "hello" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
};

const RESPONSE = {
  id: "resp_1",
  object: "response",
  created_at: CREATED,
  status: "completed",
  model: "m",
  output: [
    {
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "hello", annotations: [] }],
    },
  ],
  usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
};

const CONTENT = {
  candidates: [{ index: 0, content: { role: "model", parts: [{ text: "hello" }] }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
};

const PICTURED = {
  candidates: [
    { index: 0, content: { parts: [{ inlineData: { mimeType: "image/png", data: PICTURE } }] }, finishReason: "STOP" },
  ],
};

function messageEvents(): Answer {
  return typed([
    { type: "message_start", message: { ...MESSAGE, content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hello" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
    { type: "message_stop" },
  ] as { type: string }[]);
}

function responseEvents(): Answer {
  const [item] = RESPONSE.output;
  const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
  const part = { type: "output_text", text: "", annotations: [] };
  const events = [
    { type: "response.created", response: { ...RESPONSE, status: "in_progress", output: [] } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
    { type: "response.content_part.added", ...place, part },
    { type: "response.output_text.delta", ...place, delta: "hello" },
    { type: "response.output_text.done", ...place, text: "hello" },
    { type: "response.content_part.done", ...place, part: { ...part, text: "hello" } },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: RESPONSE },
  ];
  return typed(events.map((event, index) => ({ ...event, sequence_number: index })));
}

/** What of a path says which operation is asked for, the longest first; the streams beside the whole answers. */
const ANSWERS: readonly [path: RegExp, whole: (request: RecordedRequest) => Answer, stream?: () => Answer][] = [
  [/\/chat\/completions/, () => chat("hello"), () => chatStream(["hello"])],
  [
    /\/completions/,
    () => completion("hello"),
    () => eventStream([sseEvent({ ...JSON.parse(String(completion("hello").body)) }), "data: [DONE]\n\n"]),
  ],
  [/\/count_tokens/, () => json({ input_tokens: 3 })],
  [/\/messages/, () => json(MESSAGE), messageEvents],
  [/\/responses/, () => json(RESPONSE), responseEvents],
  [
    /:batchEmbedContents/,
    (request) => json({ embeddings: inputsOf(request, "requests").map(() => ({ values: [1] })) }),
  ],
  [/:embedContent/, () => json({ embedding: { values: [1] } })],
  [/:countTokens/, () => json({ totalTokens: 3 })],
  [/:streamGenerateContent/, () => json(CONTENT), () => eventStream([sseEvent(CONTENT)])],
  [/:generateContent/, (request) => json(request.text.includes('"IMAGE"') ? PICTURED : CONTENT)],
  [
    /\/embeddings/,
    (request) =>
      json({
        object: "list",
        model: "m",
        data: inputsOf(request, "input").map((_, index) => ({ object: "embedding", index, embedding: [1] })),
        usage: { prompt_tokens: 1, total_tokens: 1 },
      }),
  ],
  [/\/rerank/, () => json({ results: [{ index: 0, relevance_score: 0.5 }] })],
  [/\/embed_sparse/, () => json([[{ index: 1, value: 0.5 }]])],
  [/\/images\//, () => json({ created: CREATED, data: [{ b64_json: PICTURE }] })],
  [/\/audio\/speech/, () => ({ headers: { "Content-Type": "audio/mpeg" }, body: "sound" })],
  [/\/audio\//, () => json({ text: "hello" })],
  [/\/moderations/, () => json({ id: "modr-1", model: "m", results: [{ flagged: false, categories: {} }] })],
];

/** A good answer, whatever is asked for and however it is written. */
export function answerWell(request: RecordedRequest): Answer {
  const known = ANSWERS.find(([path]) => path.test(request.path));
  if (known === undefined) throw new Error(`no answer for ${request.path}`);
  const [, whole, stream] = known;
  const isStream = request.path.includes("alt=sse") || /"stream"\s*:\s*true/.test(request.text);
  return isStream && stream !== undefined ? stream() : whole(request);
}

function inputsOf(request: RecordedRequest, member: string): readonly unknown[] {
  const inputs = request.json()[member];
  return Array.isArray(inputs) && inputs.some((input) => typeof input !== "number") ? inputs : [inputs];
}
