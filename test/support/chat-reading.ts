// What a client makes of a streamed chat answer: one text, and everything that would show if it had two authors.

import { readSse, type SseReading } from "./sse-reader.ts";

export interface ChatReading {
  text: string;
  /** Distinct ids of the chunks, in order. */
  ids: string[];
  models: string[];
  /** Every role that was announced. */
  roles: string[];
  finishReasons: string[];
  /** Arguments of all tool calls, as far as they came. */
  toolArguments: string;
  errors: { message: string; type: string }[];
  /** Number of [DONE] markers. */
  done: number;
  sse: SseReading;
}

interface Chunk {
  id?: string;
  model?: string;
  error?: { message: string; type: string };
  choices?: {
    delta?: { role?: string; content?: string; tool_calls?: { function?: { arguments?: string } }[] };
    finish_reason?: string | null;
  }[];
}

export async function readChat(response: Response): Promise<ChatReading> {
  if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
  return toChatReading(await readSse(response));
}

export function toChatReading(sse: SseReading): ChatReading {
  const ids = new Set<string>();
  const models = new Set<string>();
  const reading: ChatReading = {
    text: "",
    ids: [],
    models: [],
    roles: [],
    finishReasons: [],
    toolArguments: "",
    errors: [],
    done: 0,
    sse,
  };
  for (const data of sse.data) {
    if (data === "[DONE]") {
      reading.done++;
      continue;
    }
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) reading.errors.push(chunk.error);
    if (chunk.id !== undefined) ids.add(chunk.id);
    if (chunk.model !== undefined) models.add(chunk.model);
    for (const { delta, finish_reason } of chunk.choices ?? []) {
      if (delta?.role !== undefined) reading.roles.push(delta.role);
      reading.text += delta?.content ?? "";
      for (const call of delta?.tool_calls ?? []) reading.toolArguments += call.function?.arguments ?? "";
      if (finish_reason !== undefined && finish_reason !== null) reading.finishReasons.push(finish_reason);
    }
  }
  return { ...reading, ids: [...ids], models: [...models] };
}
