// The public keys of an issuer of tokens: those of a file, or those that its address gave last.

import { createLocalJWKSet, type JWTVerifyGetKey } from "jose";
import type { Clock } from "../../lib/clock.ts";
import { readBounded } from "../../lib/read-bounded.ts";
import type { Logger } from "../../logging/logger.ts";
import { keySetProblem } from "./key-set-files.ts";

export interface KeySet {
  /** Undefined while none were fetched. Another function after each change of the keys. */
  readonly keys: JWTVerifyGetKey | undefined;
  /** Resolves when the keys were fetched, or could not be; at once where they were fetched a short time ago. */
  refresh(): Promise<void>;
  stop(): void;
}

const REFRESH_EVERY_MS = 10 * 60_000;
/** However many tokens name a key that is not known. */
const LEAST_PAUSE_MS = 60_000;
/** While there are no keys at all. */
const FIRST_PAUSE_MS = 1_000;
const FETCH_LIMIT_MS = 5_000;
const MAX_BYTES = 512 * 1024;

export function fixedKeySet(text: string): KeySet {
  return { keys: keysOf(text), refresh: async () => {}, stop() {} };
}

/** Fetched at once, and then every ten minutes; keys that were fetched stay while their address does not answer. */
export function fetchedKeySet(url: string, clock: Pick<Clock, "now">, log: Pick<Logger, "info" | "warn">): KeySet {
  const ended = new AbortController();
  let current: { text: string; keys: JWTVerifyGetKey } | undefined;
  let askedMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;
  let hasFailed = false;

  async function ask(): Promise<void> {
    askedMs = clock.now();
    try {
      const text = await fetchText(url, ended.signal);
      if (text !== current?.text) current = { text, keys: keysOf(text) };
      if (hasFailed) log.info({ url }, "the keys of a token issuer were fetched again");
      hasFailed = false;
    } catch (error) {
      if (!hasFailed && !ended.signal.aborted) {
        log.warn({ url, reason: (error as Error).message }, "the keys of a token issuer cannot be fetched");
      }
      hasFailed = true;
    }
  }

  function start(): Promise<void> {
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  }

  const timer = setInterval(start, REFRESH_EVERY_MS);
  timer.unref();
  void start();
  return {
    get keys() {
      return current?.keys;
    },
    async refresh() {
      const pauseMs = current === undefined ? FIRST_PAUSE_MS : LEAST_PAUSE_MS;
      if (asking !== undefined || clock.now() - askedMs >= pauseMs) await start();
    },
    stop() {
      clearInterval(timer);
      ended.abort();
    },
  };
}

function keysOf(text: string): JWTVerifyGetKey {
  return createLocalJWKSet(JSON.parse(text));
}

/** Rejects with the reason, in words that hold nothing of the answer. */
async function fetchText(url: string, stop: AbortSignal): Promise<string> {
  const response = await fetch(url, {
    redirect: "error",
    headers: { accept: "application/jwk-set+json, application/json" },
    signal: AbortSignal.any([stop, AbortSignal.timeout(FETCH_LIMIT_MS)]),
  });
  if (response.status !== 200) throw new Error(`status ${response.status}`);
  const bytes = await readBounded(response.body, MAX_BYTES);
  if (bytes === undefined) throw new Error(`more than ${MAX_BYTES} bytes`);
  const text = new TextDecoder().decode(bytes);
  const problem = keySetProblem(text);
  if (problem !== undefined) throw new Error(`the answer ${problem}`);
  return text;
}
