// The five requests whose walks ARCHITECTURE.md describes, with the gateway and the backends that they need.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigDocument } from "../../../src/config/sections/registry.ts";
import { FakeBackend } from "../../support/fake-backend.ts";
import { startInProcess } from "../../support/in-process.ts";
import { chat, chatStream } from "../../support/openai-answers.ts";

const MESSAGES = [{ role: "user", content: "Hello!" }];

/** What each is called on the page. */
type WalkName = "Plain chat" | "Translated stream" | "Retry" | "Refusal" | "Admin change";

export interface WalkRequest {
  /** The status of its answer. */
  status: number;
  send(): Promise<Response>;
}

export async function startWalks(): Promise<{ requests: Record<WalkName, WalkRequest>; stop(): Promise<void> }> {
  const backend = new FakeBackend({ answer: chat("hello") });
  const dataFolder = mkdtempSync(join(tmpdir(), "signalbox-walks-"));
  const config: ConfigDocument = {
    // Not beside the configuration, whose folder is watched.
    server: { bind_address: "127.0.0.1:0", data_dir: dataFolder },
    backends: ["one", "two"].map((name) => ({
      name,
      type: "openai",
      url: backend.url,
      api_key: `sekret-${name}`,
      models: ["m"],
    })),
    health_checks: { interval: "1h" },
    retry: { base_delay: "1ms" },
  };
  const gateway = await startInProcess({ config });
  const send = (method: string, path: string, body: object) =>
    gateway.fetch(path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  let delayMs = 1;
  const sendChat = (body: object) => send("POST", "/v1/chat/completions", { model: "m", ...body });
  return {
    requests: {
      "Plain chat": { status: 200, send: () => sendChat({ messages: MESSAGES }) },
      "Translated stream": {
        status: 200,
        send() {
          backend.queue(chatStream(["hel", "lo"]));
          return send("POST", "/anthropic/v1/messages", {
            model: "m",
            max_tokens: 9,
            stream: true,
            messages: MESSAGES,
          });
        },
      },
      Retry: {
        status: 200,
        send() {
          backend.queue({ status: 503, body: "{}" });
          return sendChat({ messages: MESSAGES });
        },
      },
      Refusal: { status: 400, send: () => sendChat({}) },
      "Admin change": {
        status: 200,
        send: () => send("PATCH", "/admin/config/retry", { base_delay: `${++delayMs}ms` }),
      },
    },
    async stop() {
      await gateway.close();
      backend.stop();
      rmSync(dataFolder, { recursive: true, force: true });
    },
  };
}
