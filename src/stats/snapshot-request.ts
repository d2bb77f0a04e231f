// How another process gets fresh statistics of a running gateway: it puts a file beside the snapshot, and the gateway removes
// that file once the snapshot is written. Who may write in the folder may ask; no credentials are needed.

import { existsSync } from "node:fs";
import { rm, stat, writeFile } from "node:fs/promises";

/** Appended to the name of the snapshot. */
export const REQUEST_SUFFIX = ".requested";

const LOOK_INTERVAL_MS = 1_000;
const WAIT_MS = 3_000;
const PAUSE_MS = 50;

/** Until the returned function is called. */
export function answerRequests(path: string, save: () => Promise<unknown>): () => void {
  const request = path + REQUEST_SUFFIX;
  async function look(): Promise<void> {
    if ((await stat(request).catch(() => undefined)) === undefined) return;
    await save();
    await rm(request, { force: true }).catch(() => {}); // the snapshot reports a folder that cannot be written
  }
  const timer = setInterval(() => void look(), LOOK_INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** False: no gateway has written fresh statistics in time. Rejects when the folder cannot be written. */
export async function requestSnapshot(path: string, waitMs = WAIT_MS): Promise<boolean> {
  const request = path + REQUEST_SUFFIX;
  await writeFile(request, "", { mode: 0o600 });
  try {
    const endMs = performance.now() + waitMs;
    while (existsSync(request)) {
      if (performance.now() > endMs) return false;
      await Bun.sleep(PAUSE_MS);
    }
    return true;
  } finally {
    await rm(request, { force: true });
  }
}
