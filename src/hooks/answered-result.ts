// What a hook may give as an answer: a whole answer of the neutral model, or a text alone. Encoders trust what has passed here.

import { z } from "zod";
import type { GenerationResult } from "../generation/result.ts";
import { HookFault } from "./hook-fault.ts";

const text = z.string();
const count = z.number().int().nonnegative();
const name = z.string().max(1024).default("");
const object = z.record(z.string(), z.unknown());

const source = z.discriminatedUnion("kind", [
  z.looseObject({ kind: z.literal("base64"), mediaType: text, data: text }),
  z.looseObject({ kind: z.literal("url"), url: text, mediaType: text.optional() }),
  z.looseObject({ kind: z.literal("file"), fileId: text }),
]);

const citation = z.looseObject({
  url: text.optional(),
  title: text.optional(),
  citedText: text.optional(),
  startIndex: count.optional(),
  endIndex: count.optional(),
  origin: z.looseObject({ protocol: text, value: object }).optional(),
});

const hit = z.looseObject({
  url: text,
  title: text,
  encryptedContent: text.optional(),
  pageAge: text.nullish(),
  snippet: text.optional(),
});

const part = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("text"),
    text,
    citations: z.array(citation).optional(),
    signature: text.optional(),
  }),
  z.looseObject({ type: z.literal("refusal"), text }),
  z.looseObject({
    type: z.literal("reasoning"),
    text,
    signature: text.optional(),
    sealed: text.optional(),
    origin: text.optional(),
    itemId: text.optional(),
  }),
  z.looseObject({
    type: z.literal("tool-call"),
    id: text,
    name: text,
    arguments: text,
    custom: z.boolean().optional(),
    signature: text.optional(),
    serverSide: z.boolean().optional(),
    itemId: text.optional(),
  }),
  z.looseObject({
    type: z.literal("search-result"),
    callId: text,
    results: z.array(hit),
    errorCode: text.optional(),
  }),
  z.looseObject({ type: z.literal("opaque"), protocol: text, value: object }),
  z.looseObject({ type: z.literal("image"), source, detail: text.optional() }),
  z.looseObject({ type: z.literal("audio"), source }),
]);

const finish = z.looseObject({
  reason: z.enum(["stop", "stop-sequence", "length", "tool-calls", "content-filter", "pause"]),
  raw: z.looseObject({ protocol: text, value: text }).optional(),
  stopSequence: text.optional(),
});

const usage = z.looseObject({
  input: z.looseObject({
    total: count,
    cacheRead: count.optional(),
    cacheWrite: count.optional(),
    cacheWrite1h: count.optional(),
  }),
  output: z.looseObject({ total: count, reasoning: count.optional() }),
});

/** What is left out has the value of an answer whose backend did not say it. */
const result = z
  .looseObject({
    id: name,
    model: name,
    createdAt: z.number().nonnegative().default(0),
    text: text.optional(),
    parts: z.array(part).optional(),
    finish: finish.default({ reason: "stop" }),
    usage: usage.optional(),
  })
  .refine((given) => given.text !== undefined || given.parts !== undefined, "expected a text, or parts of an answer");

/** Throws a HookFault that names the member. */
export function resultIn(given: unknown): GenerationResult {
  const checked = result.safeParse(given);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    const path = ["result", ...(issue?.path ?? [])].join(".");
    throw new HookFault(`${path}: ${issue?.message ?? "is no answer"}`);
  }
  const { text: alone, parts = [], ...more } = checked.data;
  return { ...more, parts: alone === undefined ? parts : [{ type: "text", text: alone }] } as GenerationResult;
}
