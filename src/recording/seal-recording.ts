// A request that is over becomes a recording: redacted, compressed and sealed, with the digests of its words.

import { parseJson } from "../lib/json.ts";
import { otherWork } from "../lib/other-work.ts";
import { answerTexts, readAnswer } from "./conversation.ts";
import type { FinishedRecording } from "./recorder.ts";
import { packBodies, type RecordedBody, type SealedRecording, unpackBodies } from "./recording.ts";
import { redactBody } from "./redact-body.ts";
import type { Vault } from "./vault.ts";
import { textsIn } from "./words.ts";

const SMALL_BYTES = 32 * 1024;
const decoder = new TextDecoder();
const NOTHING = new Uint8Array(0);

/** All that can be sealed; others are left out. While many are sealed, requests have their turn. */
export async function sealRecordings(finished: readonly FinishedRecording[], vault: Vault): Promise<SealedRecording[]> {
  const sealed: SealedRecording[] = [];
  let bytes = 0;
  for (const recording of finished) {
    bytes += recording.request.content.length + recording.answer.content.length;
    if (bytes >= SMALL_BYTES) {
      await otherWork();
      bytes = 0;
    }
    const one = await sealRecording(recording, vault).catch(() => undefined);
    if (one !== undefined) sealed.push(one);
  }
  return sealed;
}

export async function sealRecording(
  { facts, path, redacts, ...bodies }: FinishedRecording,
  vault: Vault,
): Promise<SealedRecording> {
  const request = read(bodies.request, redacts);
  // Small bodies take less time than a turn of the event loop.
  const isSmall = bodies.request.content.length + bodies.answer.content.length < SMALL_BYTES;
  if (!isSmall) await otherWork();
  const answer = read(bodies.answer, redacts);
  if (!isSmall) await otherWork();
  const told = readAnswer(facts.operation, { ...answer.kept, value: answer.value }, facts.status);
  const texts = told === undefined ? textsIn(answer.value) : answerTexts(told.parts);
  const words = vault.wordDigests([...textsIn(request.value), ...texts]);
  if (!isSmall) await otherWork();
  const packed = packBodies({ path, request: request.kept, answer: answer.kept });
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

/** What is kept of a body, and what it says where it is JSON. */
function read(body: RecordedBody, redacts: boolean): { kept: RecordedBody; value?: unknown } {
  const { content, contentType, incomplete } = body;
  if (!redacts) return { kept: body, value: parseJson(decoder.decode(content)) };
  const redacted = redactBody(content, contentType);
  if (redacted !== undefined) return { kept: { ...body, content: redacted.content }, value: redacted.value };
  const why = incomplete === "cut" ? "too_long_to_redact" : "not_redactable";
  return { kept: { ...body, content: NOTHING, incomplete: why } };
}
