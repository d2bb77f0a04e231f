// One attempt that takes several exchanges with its backend at the same time: all of them succeed, or it has failed.

import type { BackendEntry } from "../backends/board.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { AttemptOutcome, OutgoingRequest, Sender } from "../upstream/send.ts";
import type { SideBySide } from "./model-request.ts";

type Failed = Extract<AttemptOutcome, { ok: false }>;
type Plain = Extract<AttemptOutcome, { kind: "plain" }>;

/** The first failure ends the other exchanges, and is the failure of them all. */
export async function sendSideBySide(
  sender: Sender,
  entry: BackendEntry,
  request: OutgoingRequest,
  settings: Settings,
  { times, join }: SideBySide,
): Promise<AttemptOutcome> {
  const given = new AbortController();
  const client = times === 1 ? request.client : { signal: AbortSignal.any([request.client.signal, given.signal]) };
  let failed: Failed | undefined;
  const exchange = async (): Promise<AttemptOutcome> => {
    const outcome = await sender.send(entry, { ...request, stream: false, client }, settings);
    if (!outcome.ok && failed === undefined) {
      failed = outcome;
      given.abort();
    }
    return outcome;
  };
  const outcomes = await Promise.all(Array.from({ length: times }, exchange));
  if (failed !== undefined) return failed;
  const answers = outcomes.map((outcome) => outcome as Plain);
  return { ...(answers[0] as Plain), ...join(answers.map(({ body }) => body)) };
}
