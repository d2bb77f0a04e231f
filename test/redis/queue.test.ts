// One queue for several gateways on one Redis server: slots, the order, and what happens when a gateway or the server is gone.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import type { RecordedRequest } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { openRedisDoor, type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
let redis: RedisServer;
let tests = 0;

beforeAll(async () => {
  redis = await startRedisServer();
});
afterAll(() => redis.stop());
beforeEach(() => {
  tests++;
});

const KEYS = ["anna", "bert"].map((id) => ({ id, key: `secret-of-${id}` }));

interface Queue {
  total_waiting: number;
  backends: { in_flight: number }[];
}

/** A backend that answers when the test lets it, and gateways in front of it. */
function start(admission: NonNullable<ConfigDocument["admission"]> = {}, more: Partial<ConfigDocument> = {}) {
  const running: { user: string; finish(): void }[] = [];
  const served: string[] = [];
  const most = { running: 0 };
  const backend = bed.backend({
    answer: (request: RecordedRequest) => {
      const { user = "" } = request.json<{ user?: string }>();
      const { promise, resolve } = Promise.withResolvers<void>();
      const one = { user, finish: resolve };
      const over = () => {
        if (running.includes(one)) running.splice(running.indexOf(one), 1);
      };
      served.push(user);
      running.push(one);
      most.running = Math.max(most.running, running.length);
      void promise.then(over);
      void request.closed.then(over);
      return { ...chat("done"), headersAfter: promise };
    },
  });
  const prefix = `queue-${tests}:`;
  const config: ConfigDocument = {
    retry: { max_attempts: 1 },
    health_checks: { enabled: false },
    circuit_breaker: { enabled: false },
    admin: { auth: { method: "none" } },
    api_keys: { keys: KEYS },
    rate_limiting: { storage: "redis", redis: { url: redis.url, key_prefix: prefix, command_timeout_ms: 1_000 } },
    backends: [{ name: "gpu", url: backend.url, models: ["m"] }],
    admission: { enabled: true, per_backend: { max_concurrent: 1 }, queue: { fair_by: [] }, ...admission },
    ...more,
  };
  const ask = (gateway: Gateway, user: string, key = "anna") =>
    gateway.chat({ model: "m", user }, { headers: { Authorization: `Bearer secret-of-${key}` } });
  return {
    ...{ running, served, most, config, prefix, ask },
    async finish(): Promise<void> {
      await waitFor("a request is there", () => running.length > 0);
      running[0]?.finish();
    },
    isThere: (...users: string[]) =>
      waitFor(`${users} are there`, () => users.every((user) => running.some((one) => one.user === user)), {
        explain: () => `running: ${running.map(({ user }) => user)}; served: ${served}`,
      }),
  };
}

const queueOf = async (gateway: Gateway) =>
  (await new AdminClient(gateway).ok("GET", "/admin/queue")) as unknown as Queue;

/** As the owner of the queue says. */
async function waitingAt(gateways: readonly Gateway[]): Promise<number> {
  const counts = await Promise.all(gateways.map(async (gateway) => (await queueOf(gateway)).total_waiting));
  return counts.reduce((sum, count) => sum + count, 0);
}

const wait = (count: number, gateways: readonly Gateway[]) =>
  waitFor(`${count} wait`, async () => (await waitingAt(gateways)) === count);

const members = async (prefix: string) => (await redis.send("ZRANGE", `${prefix}queue-members`, "0", "-1")) as string[];

/**
 * They have joined: all but the owner have written to its inbox. A gateway that the server knows already may be alone for a moment
 * more, with slots of its own.
 */
const together = (prefix: string, count: number) =>
  waitFor(`${count} gateways are there`, async () => {
    const there = await members(prefix);
    if (there.length !== count) return false;
    const [generation, owner] = ((await ownerAmong(prefix)) as string).split(" ");
    const inbox = (await redis.send("XRANGE", `${prefix}queue-inbox:${owner}`, "-", "+")) as [string, string[]][];
    const envelopes = inbox.map(
      ([, fields]) => JSON.parse(fields[1] as string) as { from: string; generation: number },
    );
    const hasJoined = (id: string) =>
      envelopes.some((envelope) => envelope.from === id && envelope.generation === Number(generation));
    return there.every((id) => id === owner || hasJoined(id));
  });

const ownerAmong = async (prefix: string) =>
  waitFor("there is an owner", async () => (await redis.send("GET", `${prefix}queue-owner`)) as string | null);

const said = ({ printed }: Gateway, text: string) => printed.stderrLines.filter((line) => line.includes(text)).length;
const KEEPS = "keeps the queue of all gateways";

describe("while all are there", () => {
  test.each([2, 3])("%d gateways have one order by age and one number of slots", async (count) => {
    const { config, prefix, ask, served, most, finish, isThere } = start();
    const gateways = await Promise.all(Array.from({ length: count }, () => bed.gateway({ config })));
    await together(prefix, count);
    const answers: Promise<Response>[] = [];
    for (let index = 0; index < 12; index++) {
      answers.push(ask(gateways[index % count] as Gateway, String(index)));
      if (index === 0) await isThere("0");
      else await wait(index, gateways);
    }
    for (let index = 0; index < 12; index++) {
      await isThere(String(index));
      await finish();
    }
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect(served).toEqual(Array.from({ length: 12 }, (_, index) => String(index)));
    expect(most.running).toBe(1);
    const metrics = await (gateways[0] as Gateway).fetch("/metrics").then((response) => response.text());
    expect(metrics).toContain('signalbox_redis_up{use="admission"} 1');
  });

  test("keys take turns over all gateways", async () => {
    const { config, prefix, ask, served, finish, isThere } = start({ queue: { fair_by: ["key"] } });
    const gateways = await Promise.all([bed.gateway({ config }), bed.gateway({ config })]);
    await together(prefix, 2);
    const [one, two] = gateways as [Gateway, Gateway];
    const answers = [ask(one, "a1")];
    await isThere("a1");
    for (let index = 2; index <= 6; index++) {
      answers.push(ask(index % 2 === 0 ? one : two, `a${index}`));
      await wait(index - 1, gateways);
    }
    answers.push(ask(two, "b1", "bert"), ask(two, "b2", "bert"));
    await wait(7, gateways);
    for (const _ of answers) await finish();
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect(served.indexOf("b1")).toBeLessThan(served.indexOf("a4"));
    expect(served.indexOf("b2")).toBeLessThan(served.indexOf("a6"));
  });
});

describe("a gateway that is gone", () => {
  test("the owner is killed: the others are served in the order of age, and no slot is given twice", async () => {
    const { config, prefix, ask, served, most, running, finish, isThere } = start({
      per_backend: { max_concurrent: 3 },
    });
    const killed = await bed.process({ config });
    await together(prefix, 1);
    const others = await Promise.all([bed.gateway({ config }), bed.gateway({ config })]);
    const [one, two] = others as [Gateway, Gateway];
    await together(prefix, 3);
    const lost = [ask(killed, "lost 1"), ask(one, "one"), ask(two, "two")];
    lost[0]?.catch(() => {});
    await isThere("lost 1", "one", "two");
    const waiting = ask(killed, "lost 2");
    waiting.catch(() => {});
    await wait(1, [killed]);
    const answers: Promise<Response>[] = [];
    for (let index = 0; index < 6; index++) {
      answers.push(ask(index % 2 === 0 ? two : one, String(index)));
      await wait(index + 2, [killed]);
    }
    await killed.stop("SIGKILL");
    await isThere("0");
    expect(running.map(({ user }) => user).toSorted()).toEqual(["0", "one", "two"]);
    for (let index = 0; index < 8; index++) {
      await finish();
      if (index < 5) await isThere(String(index + 1));
    }
    for (const answer of [...answers, ...lost.slice(1)]) expect((await answer).status).toBe(200);
    expect(served.slice(3)).toEqual(["0", "1", "2", "3", "4", "5"]);
    expect(most.running).toBe(3);
    expect(said(one, KEEPS) + said(two, KEEPS)).toBe(1);
  });

  test("the owner is halted: another one goes on, and what the halted one has counts again when it goes on", async () => {
    const { config, prefix, ask, running, finish, isThere } = start({ per_backend: { max_concurrent: 2 } });
    const halted = await bed.process({ config });
    await together(prefix, 1);
    const other = await bed.gateway({ config });
    await together(prefix, 2);
    const answers = [ask(halted, "1"), ask(other, "2")];
    await isThere("1", "2");
    process.kill(halted.pid, "SIGSTOP");
    try {
      await waitFor("another one is the owner", () => said(other, KEEPS) === 1);
    } finally {
      process.kill(halted.pid, "SIGCONT");
    }
    await waitFor("both slots count", async () => (await queueOf(other)).backends[0]?.in_flight === 2);
    answers.push(ask(halted, "3"));
    await wait(1, [other]);
    expect(running.map(({ user }) => user).toSorted()).toEqual(["1", "2"]);
    for (const _ of answers) await finish();
    for (const answer of answers) expect((await answer).status).toBe(200);
  });

  test("another one is killed: its slots are free within seconds", async () => {
    const { config, prefix, ask, served, finish, isThere } = start();
    const owner = await bed.gateway({ config });
    await together(prefix, 1);
    const killed = await bed.process({ config });
    await together(prefix, 2);
    ask(killed, "lost").catch(() => {});
    await isThere("lost");
    ask(killed, "lost too").catch(() => {});
    await wait(1, [owner]);
    const answer = ask(owner, "next");
    await wait(2, [owner]);
    await killed.stop("SIGKILL");
    await isThere("next");
    await finish();
    expect((await answer).status).toBe(200);
    expect(served).toEqual(["lost", "next"]);
  });

  test("the owner is stopped: another one goes on at once", async () => {
    const { config, prefix, ask, served, most, finish, isThere } = start();
    const owner = await bed.gateway({ config });
    await together(prefix, 1);
    const other = await bed.gateway({ config });
    await together(prefix, 2);
    const answers = [ask(other, "1")];
    await isThere("1");
    answers.push(ask(other, "2"));
    await wait(1, [owner]);
    const before = await ownerAmong(prefix);
    await owner.stop();
    await wait(1, [other]);
    expect(await ownerAmong(prefix)).not.toBe(before);
    await finish();
    await finish();
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect([served, most.running]).toEqual([["1", "2"], 1]);
  });
});

describe("a server that is gone", () => {
  test.each([
    ["killed and started again", () => redis.kill(), () => redis.start()],
    ["paused", async () => redis.pause(), async () => redis.resume()],
  ])("%s: each gateway goes on with its part, and both come back", async (_, away, back) => {
    const { config, prefix, ask, served, most, running, finish, isThere } = start({
      per_backend: { max_concurrent: 2 },
    });
    const gateways = await Promise.all([bed.gateway({ config }), bed.gateway({ config })]);
    const [one, two] = gateways as [Gateway, Gateway];
    await together(prefix, 2);
    const answers = [ask(one, "one"), ask(two, "two")];
    await isThere("one", "two");
    answers.push(ask(one, "one more"), ask(two, "two more"));
    await wait(2, gateways);
    await away();
    try {
      const isAway = (gateway: Gateway) =>
        gateway.printed.stderrLines.some((line) => line.includes("Redis is away") && line.includes("admission"));
      await waitFor("both go on alone", () => gateways.every(isAway));
      await finish();
      await finish();
      await isThere("one more", "two more");
      answers.push(ask(one, "third"));
      await waitFor("it waits at its own gateway", async () => (await queueOf(one)).total_waiting === 1);
      expect(running.map(({ user }) => user).toSorted()).toEqual(["one more", "two more"]);
    } finally {
      await back();
    }
    await waitFor("both slots count at one of them", async () => {
      const queues = await Promise.all(gateways.map(queueOf));
      return queues.some(({ backends, total_waiting }) => backends[0]?.in_flight === 2 && total_waiting === 1);
    });
    for (let index = 0; index < 4; index++) {
      answers.push(ask(gateways[index % 2] as Gateway, String(index)));
      await wait(index + 2, gateways);
    }
    for (let index = 4; index < 9; index++) {
      await finish();
      await waitFor("the next one is there", () => served.length > index);
    }
    await finish();
    await finish();
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect(served.slice(4)).toEqual(["third", "0", "1", "2", "3"]);
    expect(most.running).toBe(2);
  });

  test("it is away from the start: the gateway answers, and joins later", async () => {
    const { config, prefix, ask, finish } = start();
    await redis.kill();
    const gateway = await bed.gateway({ config });
    try {
      const answer = ask(gateway, "1");
      await finish();
      expect((await answer).status).toBe(200);
    } finally {
      await redis.start();
    }
    await together(prefix, 1);
    const answer = ask(gateway, "2");
    await finish();
    expect((await answer).status).toBe(200);
  });

  test("answers that come late, and connections that are cut: every request is served, and slots are kept", async () => {
    const door = openRedisDoor(redis.port);
    door.distort = async (bytes) => {
      await Bun.sleep(20);
      return bytes;
    };
    const most = { running: 0 };
    let running = 0;
    let count = 0;
    const backend = bed.backend({
      async answer() {
        most.running = Math.max(most.running, ++running);
        await Bun.sleep(5);
        running--;
        if (++count % 40 === 0) door.cut();
        return chat("done");
      },
    });
    const { config, prefix, ask } = start(
      { per_backend: { max_concurrent: 4 } },
      {
        backends: [{ name: "gpu", url: backend.url, models: ["m"] }],
        // A gateway whose commands take longer goes on alone, with slots of its own.
        rate_limiting: {
          storage: "redis",
          redis: { url: door.url, key_prefix: `queue-${tests}:`, command_timeout_ms: 1_000 },
        },
      },
    );
    const gateways = await Promise.all([bed.gateway({ config }), bed.gateway({ config }), bed.gateway({ config })]);
    await together(prefix, 3);
    const clients = Array.from({ length: 12 }, async (_, client) => {
      for (let turn = 0; turn < 15; turn++) {
        const answer = await ask(gateways[client % 3] as Gateway, `${client}-${turn}`);
        expect(answer.status).toBe(200);
        await answer.text();
      }
    });
    await Promise.all(clients);
    expect(count).toBe(180);
    expect(most.running).toBeLessThanOrEqual(4);
    door.stop();
  });
});

describe("messages", () => {
  test("of an old owner, without sense, and lost ones change nothing", async () => {
    const { config, prefix, ask, served, most, finish, isThere } = start();
    const owner = await bed.gateway({ config });
    await together(prefix, 1);
    const member = await bed.gateway({ config });
    await together(prefix, 2);
    const answers = [ask(owner, "1")];
    await isThere("1");
    answers.push(ask(member, "2"));
    await wait(1, [owner]);
    answers.push(ask(owner, "3"));
    await wait(2, [owner]);
    const [generation, ownerId] = ((await ownerAmong(prefix)) as string).split(" ") as [string, string];
    const ids = await members(prefix);
    const memberId = ids.find((id) => id !== ownerId) as string;
    const granted = [1, 2, 3].map((id) => ({ kind: "granted", id, backend: "gpu" }));
    const forged = { from: ownerId, session: 1, number: 1_000_000, sentMs: 0, messages: granted };
    const post = (to: string, text: string) => redis.send("XADD", `${prefix}queue-inbox:${to}`, "*", "m", text);
    await post(memberId, JSON.stringify({ ...forged, generation: Number(generation) - 1 }));
    for (const text of ["", "{", "[]", JSON.stringify({ ...forged, messages: [{ kind: "granted" }] })]) {
      await post(memberId, text);
      await post(ownerId, text);
    }
    // A number that is too high: something was lost, and both sides begin again.
    await post(memberId, JSON.stringify({ ...forged, generation: Number(generation) }));
    await post(ownerId, JSON.stringify({ ...forged, from: memberId, generation: Number(generation), messages: [] }));
    await redis.send("DEL", `${prefix}queue-inbox:${ownerId}`);
    answers.push(ask(member, "4"));
    await wait(3, [owner]);
    for (let index = 1; index <= 4; index++) {
      await isThere(String(index));
      await finish();
    }
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect(served).toEqual(["1", "2", "3", "4"]);
    expect(most.running).toBe(1);
  });

  test("workers and another gateway have one order", async () => {
    const { config, prefix, ask, served, most, finish, isThere } = start();
    const single = await bed.gateway({ config });
    await together(prefix, 1);
    const several = await bed.process({ config: { ...config, server: { workers: 2 } } });
    await together(prefix, 2);
    const answers: Promise<Response>[] = [];
    for (let index = 0; index < 8; index++) {
      answers.push(ask(index % 2 === 0 ? several : single, String(index)));
      if (index === 0) await isThere("0");
      else await wait(index, [single]);
    }
    for (let index = 0; index < 8; index++) {
      await isThere(String(index));
      await finish();
    }
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect(served).toEqual(Array.from({ length: 8 }, (_, index) => String(index)));
    expect(most.running).toBe(1);
  });

  test("a gateway whose queue is switched off lets its requests go, and joins again", async () => {
    const { config, prefix, ask, running, finish, isThere } = start();
    const owner = await bed.gateway({ config });
    await together(prefix, 1);
    const member = await bed.gateway({ config });
    await together(prefix, 2);
    const answers = [ask(owner, "1")];
    await isThere("1");
    answers.push(ask(member, "2"));
    await wait(1, [owner]);
    const admin = new AdminClient(member);
    await admin.ok("PATCH", "/admin/config/admission", { enabled: false });
    await isThere("2");
    await together(prefix, 1);
    await wait(0, [owner]);
    await admin.ok("PATCH", "/admin/config/admission", { enabled: true });
    await together(prefix, 2);
    await waitFor("both slots count", async () => (await queueOf(owner)).backends[0]?.in_flight === 2);
    answers.push(ask(member, "3"));
    await wait(1, [owner]);
    expect(running.map(({ user }) => user).toSorted()).toEqual(["1", "2"]);
    for (const _ of answers) await finish();
    for (const answer of answers) expect((await answer).status).toBe(200);
  });
});
