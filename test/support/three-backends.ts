// A gateway in front of one strict backend of each format, for tests of clients: what a client does must work with all.

import { afterAll, beforeAll } from "bun:test";
import { refusals } from "./agent-workplace.ts";
import type { Gateway } from "./gateway.ts";
import { startStrictChat } from "./strict/chat.ts";
import { startStrictMessages } from "./strict/messages.ts";
import { startStrictResponses } from "./strict/responses.ts";
import { failure, type ScriptEntry } from "./strict/script.ts";
import type { StrictBackend } from "./strict/server.ts";
import type { TestBed } from "./test-bed.ts";

/** Format of the backend -> its model. */
export const MODEL_OF = { chat: "local-model", messages: "claude-sonnet-4-5", responses: "gpt-5" } as const;

export type Format = keyof typeof MODEL_OF;

export const FORMATS = Object.keys(MODEL_OF) as Format[];

export class ThreeBackends {
  /** What each backend answers next. */
  readonly #scripts: Record<Format, ScriptEntry[]> = { chat: [], messages: [], responses: [] };
  readonly #started: { gateway: Gateway; backends: Record<Format, StrictBackend> }[] = [];

  /** To be called where the tests of a file are declared. */
  constructor(bed: TestBed) {
    beforeAll(async () => {
      const next = (format: Format) => () => this.#scripts[format].shift() ?? failure(500, "the script is at its end");
      const backends = {
        chat: await startStrictChat(next("chat"), { dialect: "local", models: [MODEL_OF.chat] }),
        messages: await startStrictMessages(next("messages"), { models: [MODEL_OF.messages] }),
        responses: await startStrictResponses(next("responses"), { models: [MODEL_OF.responses] }),
      };
      this.#started.push({ backends, gateway: await startGatewayBefore(bed, backends) });
    });
    afterAll(() => {
      for (const { backends } of this.#started) for (const backend of Object.values(backends)) backend.stop();
    });
  }

  get gateway(): Gateway {
    return this.#all.gateway;
  }

  /** Sets what the backend answers next, and forgets what it was asked before. */
  script(format: Format, ...entries: ScriptEntry[]): StrictBackend {
    this.#scripts[format] = entries;
    const backend = this.#all.backends[format];
    backend.requests.length = 0;
    return backend;
  }

  /** What the backends have refused, once; probes have an empty body and do not count. */
  takeRefusals(): string[] {
    return Object.values(this.#all.backends).flatMap((backend) => {
      const found = refusals(backend);
      backend.requests.length = 0;
      return found;
    });
  }

  get #all() {
    const [started] = this.#started;
    if (started === undefined) throw new Error("the backends were not started yet");
    return started;
  }
}

function startGatewayBefore(bed: TestBed, backends: Record<Format, StrictBackend>): Promise<Gateway> {
  const key = { api_key: "sk-sekret-backend" };
  const { chat, messages, responses } = backends;
  return bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      backends: [
        { name: "chat", type: "vllm", url: chat.url, models: [MODEL_OF.chat] },
        { name: "messages", type: "anthropic", url: messages.url, models: [MODEL_OF.messages], ...key },
        {
          name: "responses",
          type: "generic",
          protocols: ["responses"],
          url: responses.url,
          models: [MODEL_OF.responses],
          ...key,
        },
      ],
    },
  });
}
