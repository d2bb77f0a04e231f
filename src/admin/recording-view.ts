// Recordings as the admin API shows them: their facts, and what was said, in one form for all client formats.

import type { ContentPart, MediaSource } from "../generation/content.ts";
import { compact } from "../lib/json.ts";
import { type ReadAnswer, readAnswer, readAsked } from "../recording/conversation.ts";
import type { Bodies, RecordedBody, RecordingFacts } from "../recording/recording.ts";
import type { ConversationPart, RecordedConversation, Recording, RecordingRow } from "./recording-schemas.ts";

const NANOS = 1e9;

export function recordingRow(facts: RecordingFacts): RecordingRow {
  return {
    id: facts.id,
    at: new Date(facts.atMs).toISOString(),
    operation: facts.operation,
    model: facts.model,
    answered_by: facts.answeredBy,
    route: facts.route,
    arm: facts.arm,
    backend: facts.backend,
    key_id: facts.keyId,
    user_id: facts.userId,
    organization_id: facts.organizationId,
    stream: facts.stream,
    status: facts.status,
    outcome: facts.outcome,
    duration_ms: facts.durationMs,
    first_byte_ms: facts.firstByteMs,
    input_tokens: facts.inputTokens,
    output_tokens: facts.outputTokens,
    cost: facts.cost / NANOS,
    dataset: facts.dataset,
  };
}

export function recordingView(facts: RecordingFacts, { path, request, answer }: Bodies): Recording {
  return {
    ...recordingRow(facts),
    path,
    conversation: conversationView(facts, request, answer),
    request: bodyView(request),
    answer: bodyView(answer),
  };
}

function conversationView(
  { operation, status }: RecordingFacts,
  request: RecordedBody,
  answer: RecordedBody,
): RecordedConversation | null {
  const asked = readAsked(operation, request);
  const told = readAnswer(operation, answer, status);
  if (asked === undefined && told === undefined) return null;
  const { system = [], messages = [], tools = [] } = asked ?? {};
  return {
    messages: [
      ...(system.length === 0 ? [] : [{ role: "system" as const, parts: system.map(partView) }]),
      ...messages.map(({ role, parts }) => ({ role, parts: parts.map(partView) })),
    ],
    tools: tools.map(({ name }) => name),
    answer: told === undefined ? null : answerView(told),
  };
}

function answerView({ parts, finish, error }: ReadAnswer) {
  return { parts: parts.map(partView), finish: finish ?? null, error: error ?? null };
}

function partView(part: ContentPart): ConversationPart {
  switch (part.type) {
    case "text":
    case "refusal":
    case "reasoning":
      return { type: part.type, text: part.text };
    case "tool-call":
      return { type: part.type, name: part.name, call_id: part.id, text: part.arguments };
    case "tool-result": {
      const text = part.parts.map((inner) => partView(inner).text ?? `(${inner.type})`).join("\n");
      return { type: part.type, call_id: part.callId, text, ...compact({ name: part.name, is_error: part.isError }) };
    }
    case "search-result": {
      const text = part.results.map(({ title, url }) => `${title}: ${url}`).join("\n");
      return { type: part.type, call_id: part.callId, text };
    }
    case "image":
    case "audio":
    case "video":
      return { type: part.type, ...mediaView(part.source) };
    case "document":
      return { type: part.type, ...mediaView(part.source), ...compact({ name: part.title }) };
    case "opaque":
      return { type: part.type, text: JSON.stringify(part.value) };
  }
}

function mediaView(source: MediaSource): Pick<ConversationPart, "media_type" | "url" | "text"> {
  if (source.kind === "file") return { text: source.fileId };
  if (source.kind === "url") return { url: source.url, ...compact({ media_type: source.mediaType }) };
  return { media_type: source.mediaType, url: `data:${source.mediaType};base64,${source.data}` };
}

const strict = new TextDecoder("utf-8", { fatal: true });

function bodyView({ contentType, bytes, incomplete, content }: RecordedBody): Recording["request"] {
  const facts = { content_type: contentType, bytes, incomplete };
  // The last sign of a body that was cut may be cut, too.
  for (const cut of [0, 1, 2, 3]) {
    try {
      return { ...facts, text: strict.decode(content.subarray(0, content.length - cut)), base64: null };
    } catch {
      if (incomplete !== "cut") break;
    }
  }
  return { ...facts, text: null, base64: Buffer.from(content).toString("base64") };
}
