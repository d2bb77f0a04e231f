// Sends requests to a pool of which the first backend answers every request with one status, and counts who was asked.

import { chat, failure } from "./openai-answers.ts";
import { startGateway } from "./start-gateway.ts";
import type { TestBed } from "./test-bed.ts";

export interface PoolRun {
  strategy: string;
  /** Number of backends. */
  size: number;
  /** What the first backend answers. */
  status: number;
  requests: number;
  /** All at once, instead of one after the other. */
  isConcurrent: boolean;
}

export interface PoolCounts {
  /** Requests that met each backend first. */
  counts: number[];
  /** Requests that each backend got, retries included. */
  attempts: number[];
  /** Requests that were answered with 200. */
  answered: number;
}

/** The circuits are off, so that the strategy alone decides. */
export async function firstChoices(bed: Pick<TestBed, "backend">, run: PoolRun): Promise<PoolCounts> {
  const { strategy, size, status, requests, isConcurrent } = run;
  const backends = Array.from({ length: size }, (_, index) =>
    bed.backend({ answer: index === 0 && status !== 200 ? failure(status) : chat("fine") }),
  );
  await using gateway = await startGateway({
    config: {
      routing: { selection_strategy: strategy },
      circuit_breaker: { enabled: false },
      backends: backends.map(({ url }, index) => ({ name: `b${index}`, url, models: ["m"] })),
    },
  });
  async function ask(index: number): Promise<number> {
    const headers = { "X-Request-ID": `request-${index}`, "X-Session-ID": `session-${index}` };
    const response = await gateway.chat({}, { headers });
    await response.text();
    return response.status;
  }
  const statuses: number[] = [];
  if (isConcurrent) statuses.push(...(await Promise.all(Array.from({ length: requests }, (_, index) => ask(index)))));
  else for (let index = 0; index < requests; index++) statuses.push(await ask(index));

  const first = new Map<string, { place: number; atMs: number }>();
  backends.forEach((backend, place) => {
    for (const { headers, receivedAtMs } of backend.requests) {
      const id = headers["x-request-id"] ?? "";
      const earlier = first.get(id);
      if (earlier === undefined || receivedAtMs < earlier.atMs) first.set(id, { place, atMs: receivedAtMs });
    }
  });
  const places = [...first.values()].map(({ place }) => place);
  return {
    counts: backends.map((_, place) => places.filter((each) => each === place).length),
    attempts: backends.map((backend) => backend.requests.length),
    answered: statuses.filter((each) => each === 200).length,
  };
}
