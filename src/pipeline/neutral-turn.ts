// One answer of a model as neutral events, whatever its backend speaks: asked for along the fallback chain, and read with
// the relay's own care for broken streams and slow readers.

import type { GenerationEvent } from "../generation/events.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { ClientProtocol } from "../protocols/protocol.ts";
import { clientFailure, type LiveStream, type Relay, relayInto, type Takeover } from "../upstream/relay.ts";
import type { RequestContext } from "./context.ts";
import type { FallbackChains, FallbackResult } from "./fallback.ts";
import { type Joint, type MidStreamParts, takeoverFor } from "./mid-stream.ts";
import type { ModelRequest } from "./model-request.ts";
import { SeenEvents } from "./neutral-joint.ts";
import { withOverrides } from "./routes.ts";

export interface NeutralTurn {
  /** Who answers, or has failed to. */
  result: FallbackResult;
  /** Trouble with the backend is a failure event. A reader that stops frees the backend. */
  events: AsyncGenerator<GenerationEvent, void>;
}

/**
 * Asks for a neutral request instead of the body, as it is before a target of a route sets fields. Throws GatewayError when no backend can take it.
 * @param client - in whose words a refusal names fields, and whose losses are noted
 * @param takingOver - looks for another backend when a stream breaks off; left out: the stream ends
 */
export async function openTurn(
  chains: FallbackChains,
  context: RequestContext,
  request: ModelRequest,
  neutral: GenerationRequest,
  client: ClientProtocol,
  takingOver?: MidStreamParts,
): Promise<NeutralTurn> {
  const queue = new TurnEvents();
  // `answered` belongs to the whole answer, of which this is a turn.
  const { routed } = request;
  const wanted = withOverrides(neutral, routed?.target.set);
  const asking = { kind: "neutral" as const, neutral: wanted, client: queue.clientLike(client) };
  const asked: ModelRequest = { ...request, asking, stream: true, choices: 1, answered: undefined };
  if (routed !== undefined) asked.routed = { ...routed, neutral };
  const result = await chains.forward(context, asked);
  if (result.kind === "stream") {
    const takeover = takingOver && takeoverFor(takingOver, context, asked, result, queue.joint());
    return { result, events: queue.read(result.live, takeover) };
  }
  const failure =
    result.kind === "failed"
      ? clientFailure(result.failure)
      : { message: "The backend did not answer with a stream.", status: 502 };
  queue.add({ type: "failure", failure });
  return { result, events: queue.read(undefined, undefined) };
}

/** Events that wait to be read before the backend has to wait too. */
const MAX_WAITING = 1_000;

/** Events on their way from the relay to their reader. */
class TurnEvents {
  #waiting: GenerationEvent[] = [];
  #arrived = Promise.withResolvers<void>();
  /** The backend waits for it. */
  #drained: PromiseWithResolvers<void> | undefined;
  #relay: Relay | undefined;
  readonly #seen = new SeenEvents();

  joint(): Joint {
    return this.#seen.joint((event) => this.add(event));
  }

  add(event: GenerationEvent): void {
    this.#seen.push(event);
    this.#waiting.push(event);
    this.#arrived.resolve();
    if (this.#waiting.length > MAX_WAITING && this.#drained === undefined) {
      this.#drained = Promise.withResolvers();
      this.#relay?.waitFor(this.#drained.promise);
    }
  }

  /** Takes the events of an answer; no bytes are written. */
  clientLike(client: ClientProtocol): ClientProtocol {
    return {
      ...client,
      encodeResponse: () => {
        throw new Error("neutral answers are streams");
      },
      streamEncoder: () => ({
        push: (event) => {
          this.add(event);
          return "";
        },
        end: () => "",
      }),
    };
  }

  async *read(live: LiveStream | undefined, takeover: Takeover | undefined): AsyncGenerator<GenerationEvent, void> {
    let isOver = live === undefined;
    const end = () => {
      isOver = true;
      this.#arrived.resolve();
    };
    const sink = {
      write: ({ length }: Uint8Array) => length,
      close: end,
      // The reader of the answer has added the failure as an event.
      fail: end,
    };
    this.#relay = live && relayInto(live, sink, { takeover, tap: undefined, finished() {} });
    try {
      for (;;) {
        const batch = this.#waiting;
        this.#waiting = [];
        this.#drained?.resolve();
        this.#drained = undefined;
        yield* batch;
        if (this.#waiting.length > 0) continue;
        if (isOver) return;
        await this.#arrived.promise;
        this.#arrived = Promise.withResolvers();
      }
    } finally {
      if (!isOver) this.#relay?.cancel();
    }
  }
}
