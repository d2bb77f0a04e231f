// Asks one address whether a certain engine answers there; every trouble means no.

import type { EngineSign } from "../backends/kinds.ts";
import { isObject } from "../lib/json.ts";

export type Probe = (url: string, init: RequestInit) => Promise<Response>;

/** More than the model list of any engine; a stranger on the port may send without end. */
const MAX_ANSWER_BYTES = 4 * 2 ** 20;

/** Returns by the time the signal aborts, even when the probe does not follow its signal. */
export async function answersAs(
  signs: readonly EngineSign[],
  url: string,
  probe: Probe,
  signal: AbortSignal,
): Promise<boolean> {
  const answers = signs.map(async (sign) => {
    const body = await readJson(probe, url + sign.path, signal);
    // Promise.any wants a rejection for "no".
    if (!shows(body, sign)) throw new Error(`${url} does not show this sign`);
    return true;
  });
  const asked = Promise.any(answers).catch(() => false);
  return Promise.race([asked, aborted(signal).then(() => false)]);
}

function shows(body: unknown, { list, member, text }: EngineSign): boolean {
  const entries = isObject(body) ? body[list] : undefined;
  if (!Array.isArray(entries)) return false;
  return entries.some((entry: unknown) => {
    const value = isObject(entry) ? entry[member] : undefined;
    return typeof value === "string" && (text === undefined || value === text);
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

async function readJson(probe: Probe, url: string, signal: AbortSignal): Promise<unknown> {
  // A probe's connection is not worth keeping; a redirect is no sign of an engine.
  const response = await probe(url, { signal, redirect: "manual", keepalive: false });
  if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > MAX_ANSWER_BYTES) throw new Error(`${url} sent more than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
}
