// Sends requests to pools of which the first backend answers every request with one status, and counts who was asked.

import type { FakeBackend } from "./fake-backend.ts";
import type { Gateway } from "./gateway.ts";
import { chat, failure } from "./openai-answers.ts";
import type { TestBed } from "./test-bed.ts";

export interface Pool {
  /** Number of backends. */
  size: number;
  /** What the first backend answers. */
  status: number;
}

export interface PoolRun {
  requests: number;
  /** All at once, instead of one after the other. */
  isConcurrent: boolean;
}

/** One gateway in front of all pools, each behind a model of its own. The circuits are off: the strategy alone decides. */
export async function startPools<const Name extends string>(
  bed: TestBed,
  strategy: string,
  pools: Record<Name, Pool>,
): Promise<(name: Name, run: PoolRun) => Promise<number[]>> {
  const members = Object.entries<Pool>(pools).map(([model, { size, status }]) => {
    const backends = Array.from({ length: size }, (_, index) =>
      bed.backend({ answer: index === 0 && status !== 200 ? failure(status) : chat("fine") }),
    );
    return { model, backends };
  });
  const gateway = await bed.gateway({
    config: {
      routing: { selection_strategy: strategy },
      circuit_breaker: { enabled: false },
      backends: members.flatMap(({ model, backends }) =>
        backends.map(({ url }, index) => ({ name: `${model}-${index}`, url, models: [model] })),
      ),
    },
  });
  return (name, run) => {
    const backends = members.find(({ model }) => model === name)?.backends ?? [];
    return firstChoices(gateway, name, backends, run);
  };
}

/** How many requests met each backend first. */
async function firstChoices(
  gateway: Gateway,
  model: string,
  backends: readonly FakeBackend[],
  { requests, isConcurrent }: PoolRun,
): Promise<number[]> {
  for (const backend of backends) backend.requests.length = 0;
  async function ask(index: number): Promise<void> {
    const headers = { "X-Request-ID": `request-${index}`, "X-Session-ID": `session-${index}` };
    await (await gateway.chat({ model }, { headers })).text();
  }
  if (isConcurrent) await Promise.all(Array.from({ length: requests }, (_, index) => ask(index)));
  else for (let index = 0; index < requests; index++) await ask(index);

  const first = new Map<string, { place: number; atMs: number }>();
  backends.forEach((backend, place) => {
    for (const { headers, receivedAtMs } of backend.requests) {
      const id = headers["x-request-id"] ?? "";
      const earlier = first.get(id);
      if (earlier === undefined || receivedAtMs < earlier.atMs) first.set(id, { place, atMs: receivedAtMs });
    }
  });
  const places = [...first.values()].map(({ place }) => place);
  return backends.map((_, place) => places.filter((each) => each === place).length);
}
