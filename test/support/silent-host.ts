// An address that never completes a connection: a listener with a full queue, as a firewalled host behaves.

import type { Subprocess } from "bun";
import { waitFor } from "./wait-for.ts";

const QUEUE_FILLER_LIMIT = 5_000;

export interface SilentHost extends AsyncDisposable {
  url: string;
}

/** Undefined where the system answers every connection, whatever the length of the queue. */
export async function startSilentHost(): Promise<SilentHost | undefined> {
  // The child listens and then never returns to its event loop, so that it accepts nothing.
  const script = `
    const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    require("node:fs").writeSync(1, listener.port + "\\n");
    for (;;) Bun.sleepSync(1_000);
  `;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "ignore" });
  const port = await readPort(child);
  const fillers: { end(): unknown }[] = [];
  const dispose = async (): Promise<void> => {
    child.kill("SIGKILL");
    await child.exited;
    for (const filler of fillers) filler.end();
  };
  while (fillers.length < QUEUE_FILLER_LIMIT) {
    const attempts = Array.from({ length: 64 }, () =>
      Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {}, error() {} } }).then(
        (socket) => fillers.push(socket),
        () => 0,
      ),
    );
    const done = await Promise.race([Promise.all(attempts).then(() => true), Bun.sleep(300).then(() => false)]);
    if (!done) return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: dispose };
  }
  await dispose();
  return undefined;
}

async function readPort(child: Subprocess<"ignore", "pipe", "ignore">): Promise<number> {
  let text = "";
  const reader = child.stdout.getReader();
  return waitFor("the silent host tells its port", async () => {
    const { value } = await reader.read();
    text += new TextDecoder().decode(value);
    return text.includes("\n") ? Number(text) : undefined;
  });
}
