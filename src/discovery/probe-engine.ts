// Asks one address whether a certain engine answers there; every trouble means no.

import type { EngineSign } from "../backends/kinds.ts";
import { orAborted } from "../lib/abortable-delay.ts";
import { isObject } from "../lib/json.ts";
import { readBounded } from "../lib/read-bounded.ts";

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
  let isThere = false;
  const answers = signs.map(async (sign) => {
    const body = await readJson(probe, url + sign.path, signal);
    // Promise.any wants a rejection for "no".
    if (!shows(body, sign)) throw new Error(`${url} does not show this sign`);
    isThere = true;
  });
  await orAborted(
    Promise.any(answers).catch(() => undefined),
    signal,
  );
  return isThere;
}

function shows(body: unknown, { list, member, text }: EngineSign): boolean {
  const entries = isObject(body) ? body[list] : undefined;
  if (!Array.isArray(entries)) return false;
  return entries.some((entry: unknown) => {
    const value = isObject(entry) ? entry[member] : undefined;
    return typeof value === "string" && (text === undefined || value === text);
  });
}

async function readJson(probe: Probe, url: string, signal: AbortSignal): Promise<unknown> {
  // A probe's connection is not worth keeping; a redirect is no sign of an engine.
  const response = await probe(url, { signal, redirect: "manual", keepalive: false });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  const body = await readBounded(response.body, MAX_ANSWER_BYTES);
  if (body === undefined) throw new Error(`${url} sent more than ${MAX_ANSWER_BYTES} bytes`);
  return JSON.parse(new TextDecoder().decode(body));
}
