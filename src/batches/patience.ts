// What the batches under way have to write is written in the end: a full disk makes them wait, and loses nothing.

import { GatewayError } from "../errors/gateway-error.ts";
import { reasonOf } from "../files/storage-trouble.ts";
import { abortableDelay } from "../lib/abortable-delay.ts";

const PAUSE_MS = 1_000;

export interface Patience {
  /** Runs the task until it succeeds; rejects when everything ends, and for what no waiting helps against. */
  until<Result>(task: () => Result | Promise<Result>): Promise<Result>;
  end(): void;
}

export function createPatience(log: {
  warn(fields: object, message: string): void;
  info(message: string): void;
}): Patience {
  const ended = new AbortController();
  /** Tasks that wait: the first one is logged, and the last one's end. */
  let waiting = 0;
  return {
    async until(task) {
      let isWaiting = false;
      try {
        for (;;) {
          ended.signal.throwIfAborted();
          try {
            return await task();
          } catch (error) {
            ended.signal.throwIfAborted();
            if (!maySucceedLater(error)) throw error;
            if (!isWaiting && ++waiting === 1) {
              const { cause = error } = error as Error;
              log.warn({ reason: reasonOf(cause) }, "batches wait: their storage, or that of files, cannot be used");
            }
            isWaiting = true;
          }
          await abortableDelay(PAUSE_MS, ended.signal);
        }
      } finally {
        if (isWaiting && --waiting === 0) log.info("batches go on");
      }
    },
    end: () => ended.abort(),
  };
}

/** Storages say what is wrong with a code. What an operator has removed does not come back, and a bug stays one. */
function maySucceedLater(error: unknown): boolean {
  if (error instanceof GatewayError) return true;
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" && code !== "ENOENT";
}
