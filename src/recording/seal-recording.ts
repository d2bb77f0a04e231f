// A request that is over becomes a recording: redacted, compressed and sealed, with the digests of its words.

import { otherWork } from "../lib/other-work.ts";
import { answerTexts, readAnswer } from "./conversation.ts";
import type { FinishedRecording } from "./recorder.ts";
import { packBodies, type RecordedBody, type SealedRecording, unpackBodies } from "./recording.ts";
import { redactBody } from "./redact-body.ts";
import type { Vault } from "./vault.ts";
import { textsOf, wordsOf } from "./words.ts";

const SMALL_BYTES = 32 * 1024;
const NOTHING = new Uint8Array(0);

export async function sealRecording(
  { facts, path, ...bodies }: FinishedRecording,
  { vault, redacts }: { vault: Vault; redacts: boolean },
): Promise<SealedRecording> {
  const request = redacts ? redactedBody(bodies.request) : bodies.request;
  // Small bodies take less time than a turn of the event loop.
  const isSmall = bodies.request.content.length + bodies.answer.content.length < SMALL_BYTES;
  if (!isSmall) await otherWork();
  const answer = redacts ? redactedBody(bodies.answer) : bodies.answer;
  if (!isSmall) await otherWork();
  const told = readAnswer(facts.operation, answer, facts.status);
  const texts = [
    ...textsOf(request.content),
    ...(told === undefined ? textsOf(answer.content) : answerTexts(told.parts)),
  ];
  const words = vault.wordDigests(wordsOf(texts));
  if (!isSmall) await otherWork();
  const packed = packBodies({ path, request, answer });
  const compressed = isSmall ? Bun.zstdCompressSync(packed, { level: 1 }) : await Bun.zstdCompress(packed);
  return { facts, sealed: vault.seal(facts.owner, facts.id, compressed), words };
}

/** Undefined where it cannot be opened. */
export async function openRecording(
  { owner, id }: { owner: string; id: string },
  sealed: Uint8Array,
  vault: Vault,
): Promise<ReturnType<typeof unpackBodies> | undefined> {
  const compressed = vault.open(owner, id, sealed);
  return compressed && unpackBodies(await Bun.zstdDecompress(compressed));
}

function redactedBody(body: RecordedBody): RecordedBody {
  const { content, contentType, incomplete } = body;
  const redacted = redactBody(content, contentType);
  if (redacted !== undefined) return { ...body, content: redacted };
  return { ...body, content: NOTHING, incomplete: incomplete === "cut" ? "too_long_to_redact" : "not_redactable" };
}
