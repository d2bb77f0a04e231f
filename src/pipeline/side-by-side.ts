// One attempt that takes several exchanges with its backend at the same time: all of them succeed, or it has failed.

import type { BackendEntry } from "../backends/board.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { OutgoingRequest, Sender, SendOutcome } from "../upstream/send.ts";
import type { SideBySide } from "./model-request.ts";

type Failed = Extract<SendOutcome, { ok: false }>;
type Plain = Extract<SendOutcome, { kind: "plain" }>;

/** The first failure ends the other exchanges, and is the failure of them all. */
export async function sendSideBySide(
  sender: Sender,
  entry: BackendEntry,
  request: OutgoingRequest,
  settings: Settings,
  { times, join }: SideBySide,
): Promise<SendOutcome> {
  const given = new AbortController();
  const client = times === 1 ? request.client : { signal: AbortSignal.any([request.client.signal, given.signal]) };
  let failed: Failed | undefined;
  const exchange = async (): Promise<SendOutcome> => {
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
