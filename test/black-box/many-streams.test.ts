// 2,000 streams at once through one gateway process: none lost, every one complete to the byte.

import { expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { chatEvents, eventStream } from "../support/openai-answers.ts";
import { postBytes, RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const WANTED_STREAMS = 2_000;
/** Each stream takes two descriptors, in the gateway as in this process, beside those that a process has anyway. */
const DESCRIPTORS_PER_STREAM = 2;
const OTHER_DESCRIPTORS = 200;

async function descriptorLimit(): Promise<number> {
  const text = (await new Response(Bun.spawn(["sh", "-c", "ulimit -n"]).stdout).text()).trim();
  return text === "unlimited" ? Number.POSITIVE_INFINITY : Number(text);
}

/** Fewer than wanted only where the system does not let a process have the descriptors; that is said. */
async function possibleStreams(): Promise<number> {
  const limit = await descriptorLimit();
  const possible = Math.min(WANTED_STREAMS, Math.floor((limit - OTHER_DESCRIPTORS) / DESCRIPTORS_PER_STREAM));
  if (possible < WANTED_STREAMS) console.log(`ulimit -n is ${limit}: ${possible} streams instead of ${WANTED_STREAMS}`);
  return possible;
}

async function openStreams(gateway: Gateway, count: number): Promise<RawConnection[]> {
  const connections: RawConnection[] = [];
  // In groups, because a listener's queue of new connections is shorter than this.
  while (connections.length < count) {
    const group = Array.from({ length: Math.min(100, count - connections.length) }, () =>
      RawConnection.open(gateway.port),
    );
    connections.push(...(await Promise.all(group)));
  }
  for (const [index, connection] of connections.entries()) {
    const body = { model: "m", stream: true, messages: [{ role: "user", content: "hi" }], position: index };
    connection.write(postBytes("/v1/chat/completions", JSON.stringify(body)));
  }
  return connections;
}

test(`${WANTED_STREAMS} streams are open at the same time and all arrive whole`, async () => {
  const streams = await possibleStreams();
  const allOpen = Promise.withResolvers<void>();
  const textsOf = (index: number): string[] => Array.from({ length: 10 }, (_, part) => `stream ${index} part ${part} `);
  const backend = bed.backend({
    answer: (request) => {
      const index = request.json<{ position: number }>().position;
      // The first event goes out at once; the rest waits until every stream is open.
      return eventStream(chatEvents(textsOf(index)), {
        beforeChunk: (chunk) => (chunk === 1 ? allOpen.promise : undefined),
      });
    },
  });
  const gateway = await bed.gateway({
    config: {
      logging: { access_log: false },
      backends: [{ name: "a", url: backend.url, models: ["m"] }],
    },
  });

  const connections = await openStreams(gateway, streams);
  const startedMs = performance.now();
  await waitFor("every stream reached the backend", () => backend.requests.length === streams, {
    timeoutMs: 30_000,
    explain: () => `${backend.requests.length} of ${streams}`,
  });
  expect(backend.busyConnections).toBe(streams);
  expect((await gateway.backend("a")).in_flight).toBe(streams);
  await waitFor("every client has its first event", () => connections.every(({ received }) => received.length > 0), {
    timeoutMs: 30_000,
  });
  const openMs = performance.now() - startedMs;
  allOpen.resolve();
  const isDone = (connection: RawConnection): boolean => connection.isClosed || connection.partialBody().complete;
  await waitFor("every stream is complete", () => connections.every(isDone), { timeoutMs: 30_000, intervalMs: 20 });
  console.log(
    `${streams} streams open after ${openMs.toFixed(0)} ms, complete ${(performance.now() - startedMs - openMs).toFixed(0)} ms later`,
  );

  const lost = connections.flatMap((connection, index) => {
    const { body, complete } = connection.partialBody();
    return complete && body.toString() === chatEvents(textsOf(index)).join("") ? [] : [index];
  });
  expect(lost).toEqual([]);
  for (const connection of connections) connection.close();
  await gateway.waitUntilIdle();
  expect((await gateway.backend("a")).failed_requests).toBe(0);
}, 120_000);
