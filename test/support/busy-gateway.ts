// A gateway as an operator meets one: several backends of which some fail, keys, prices, fallback chains, and clients that
// ask all the time.

import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { FakeBackend } from "./fake-backend.ts";
import { type ProcessGateway, startGatewayProcess } from "./gateway-process.ts";
import { chatBody, chatEvents, eventStream, failure, sseEvent } from "./openai-answers.ts";

const WORDS = "The signal stands at go and the line ahead is clear as far as anybody can see from here".split(" ");

interface BusyOptions {
  auth?: NonNullable<ConfigDocument["admin"]>["auth"];
  /** More of the configuration. */
  config?: ConfigDocument;
  port?: number;
}

/** Closes everything. */
export interface BusyGateway {
  gateway: ProcessGateway;
  backends: Readonly<Record<"fast" | "slow" | "broken", FakeBackend>>;
  /** Answers so many requests, several at a time. */
  load(requests: number): Promise<void>;
  /** Asks until it is ended, so many times a second. */
  keepAsking(perSecond: number): { end(): Promise<void> };
  close(): Promise<void>;
}

export const BUSY_KEYS = ["sekret-search", "sekret-assistant", "sekret-batch"] as const;

export async function startBusyGateway({ auth, config, port = 0 }: BusyOptions = {}): Promise<BusyGateway> {
  const models = ["qwen3-32b", "llama-3.3-70b"];
  const backends = {
    fast: new FakeBackend({ models, answer: (request) => answerOf(request.json(), 12) }),
    slow: new FakeBackend({ models, answer: (request) => answerOf(request.json(), 60) }),
    broken: new FakeBackend({ models, answer: () => failure(503, "The engine is out of memory.") }),
  };
  const gateway = await startGatewayProcess({
    config: {
      backends: [
        { name: "gpu-1", url: backends.fast.url, type: "openai", models, weight: 3 },
        { name: "gpu-2", url: backends.slow.url, type: "openai", models, weight: 2 },
        { name: "gpu-3", url: backends.broken.url, type: "openai", models: ["qwen3-32b", "mixtral-8x7b"], weight: 1 },
        { name: "hosted", type: "demo", models: ["gpt-5-mini"] },
        { name: "gpu-4", url: "http://127.0.0.1:1", models: ["llama-3.3-70b"] },
      ],
      routing: { selection_strategy: "WeightedRoundRobin" },
      fallback: { fallback_chains: { "llama-3.3-70b": ["qwen3-32b", "gpt-5-mini"] } },
      circuit_breaker: { enabled: true, failure_threshold: 1000 },
      response_cache: { enabled: true },
      retry: { max_attempts: 3, base_delay: "20ms", max_delay: "50ms" },
      model_metadata: {},
      api_keys: {
        mode: "permissive",
        keys: [
          { id: "search", key: BUSY_KEYS[0], user_id: "mara", organization_id: "research" },
          { id: "assistant", key: BUSY_KEYS[1], user_id: "jo", organization_id: "product", rate_limit: 600 },
          { id: "batch", key: BUSY_KEYS[2], organization_id: "research" },
        ],
      },
      ...config,
      server: { bind_address: `127.0.0.1:${port}`, ...config?.server },
      admin: { ...(auth !== undefined && { auth }), ...config?.admin },
    } as ConfigDocument,
    awaitHealth: false,
  });

  let count = 0;
  async function ask(): Promise<void> {
    const number = count++;
    const usual = ["qwen3-32b", "qwen3-32b", "llama-3.3-70b", "gpt-5-mini"][number % 4];
    const model = number % 61 === 60 ? "no-such-model" : number % 23 === 22 ? "mixtral-8x7b" : usual;
    const response = await gateway
      .chat(
        {
          model,
          messages: [{ role: "user", content: `Question ${number}` }],
          stream: number % 3 !== 0,
          temperature: number % 5 === 0 ? 0 : 1,
        },
        { headers: { Authorization: `Bearer ${BUSY_KEYS[number % 3]}` } },
      )
      .catch(() => undefined);
    await response?.arrayBuffer().catch(() => {});
  }

  return {
    gateway,
    backends,
    async load(requests) {
      let left = requests;
      const workers = Array.from({ length: 6 }, async () => {
        while (left-- > 0) await ask();
      });
      await Promise.all(workers);
    },
    keepAsking(perSecond) {
      const running = new Set<Promise<void>>();
      const timer = setInterval(() => {
        const asked = ask().finally(() => running.delete(asked));
        running.add(asked);
      }, 1000 / perSecond);
      return {
        async end() {
          clearInterval(timer);
          await Promise.all(running);
        },
      };
    },
    async close() {
      await gateway.close();
      for (const backend of Object.values(backends)) backend.stop();
    },
  };
}

function answerOf({ stream, model }: { stream?: boolean; model?: string }, firstMs: number) {
  const jitterMs = Math.round(firstMs * (0.7 + Math.random() * 0.8));
  const usage = { prompt_tokens: 40 + Math.round(Math.random() * 400), completion_tokens: WORDS.length };
  if (!stream) return { body: chatBody(WORDS.join(" "), { model, usage }), beforeHeadersMs: jitterMs * 2 };
  const events = chatEvents(
    WORDS.map((word) => `${word} `),
    { model: model ?? "m", done: false },
  );
  const last = [sseEvent({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model, choices: [], usage })];
  return eventStream([...events, ...last, "data: [DONE]\n\n"], { beforeFirstChunkMs: jitterMs, betweenChunksMs: 4 });
}
