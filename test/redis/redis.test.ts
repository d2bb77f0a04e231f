// The connection to a Redis server: what it takes to open it, how long anybody waits, and what a server may do to it.

import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDeadlines } from "../../src/lib/deadlines.ts";
import { BadAnswer } from "../../src/redis/fault.ts";
import { createRedis, MAX_WAITING, type Redis, type RedisClient, type RedisParts } from "../../src/redis/redis.ts";
import { openRedisDoor, type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { waitFor, within } from "../support/wait-for.ts";

const server = await startRedisServer();
const servers: RedisServer[] = [server];
const folder = mkdtempSync(join(tmpdir(), "redis-test-"));
const opened: { close(): void }[] = [];

afterEach(() => {
  for (const each of opened.splice(0)) each.close();
});
afterAll(async () => {
  await Promise.all(servers.map((each) => each.stop()));
  rmSync(folder, { recursive: true, force: true });
});

async function another(options: Parameters<typeof startRedisServer>[0]): Promise<RedisServer> {
  const started = await startRedisServer(options);
  servers.push(started);
  return started;
}

function door() {
  const made = openRedisDoor(server.port);
  opened.push({ close: made.stop });
  return made;
}

const ping = (client: RedisClient) => client.send("PING", []);

async function checkPing(client: RedisClient): Promise<void> {
  if ((await ping(client)) !== "PONG") throw new BadAnswer();
}

interface Line {
  level: string;
  message: string;
  reason?: string;
}

function connect(url: string, settings: Partial<RedisParts["settings"]> = {}, more: Partial<RedisParts> = {}) {
  const lines: Line[] = [];
  const write = (level: string) => (fields: object | string, message?: string) =>
    void lines.push({ level, message: message ?? "", ...(fields as object) });
  const counts = { unanswered: 0, returned: 0 };
  const redis: Redis = createRedis({
    settings: { url, poolSize: 4, connectTimeoutMs: 500, commandTimeoutMs: 500, tls: false, ...settings },
    use: "test",
    check: checkPing,
    returned: () => void counts.returned++,
    unanswered: () => void counts.unanswered++,
    deadlines: createDeadlines(),
    now: () => performance.now(),
    random: () => 0.5,
    log: { info: write("info"), warn: write("warn") } as RedisParts["log"],
    ...more,
  });
  opened.push(redis);
  const isBack = () => waitFor("Redis is used again", () => redis.isThere);
  return { redis, lines, counts, isBack };
}

async function askedPing(redis: Redis): Promise<unknown> {
  return await redis.ask(ping);
}

describe("it opens", () => {
  test("a unix socket, a database of it, and one with a password", async () => {
    const plain = await another({ socket: true });
    for (const url of [plain.url, `unix:${plain.socketPath}`]) {
      expect(await askedPing(connect(url).redis)).toBe("PONG");
    }
    const third = connect(`unix:${plain.socketPath}?db=3`).redis;
    expect(await third.ask((client) => client.send("CLIENT", ["INFO"]))).toContain(" db=3 ");
    const locked = await another({ socket: true, password: "sekret-of-redis" });
    expect(await askedPing(connect(locked.url).redis)).toBe("PONG");
    const { redis, lines } = connect(`unix:${locked.socketPath}`);
    expect(await askedPing(redis)).toBeUndefined();
    expect(lines).toEqual([expect.objectContaining({ level: "warn" })]);
  });

  test("with a password on a port, and tells nobody the wrong one", async () => {
    const locked = await another({ password: "sekret-of-redis" });
    expect(await askedPing(connect(locked.url).redis)).toBe("PONG");
    const second = connect(`${locked.url}/2`).redis;
    expect(await second.ask((client) => client.send("CLIENT", ["INFO"]))).toContain(" db=2 ");
    const { redis, lines } = connect(locked.url.replace("sekret-of", "sekret-off"));
    expect(await askedPing(redis)).toBeUndefined();
    expect(JSON.stringify(lines)).not.toContain("sekret");
    expect(redis.isThere).toBe(false);
  });

  test("TLS is checked: a certificate of nobody known is none", async () => {
    const [certificate, key] = [join(folder, "own.pem"), join(folder, "own.key")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const made = Bun.spawnSync(["openssl", "req", "-x509", ...curve, "-keyout", key, "-out", certificate, ...subject]);
    expect(made.exitCode).toBe(0);
    const { url } = await another({ tls: { certificate, key, authority: certificate } });
    const refused = connect(url);
    expect(await askedPing(refused.redis)).toBeUndefined();
    expect(refused.redis.isThere).toBe(false);
    // The one that the system's list, or NODE_EXTRA_CA_CERTS, names is taken; that is known at the start of a process.
    const program = `
      for (const [url, tls] of [[process.argv[1], false], [process.argv[1].replace("rediss", "redis"), true]]) {
        const { createRedis } = await import(process.argv[2] + "/redis/redis.ts");
        const { createDeadlines } = await import(process.argv[2] + "/lib/deadlines.ts");
        const settings = { url, tls, poolSize: 1, connectTimeoutMs: 900, commandTimeoutMs: 900 };
        const log = { info() {}, warn: console.error };
        const parts = { use: "", unanswered() {}, random: Math.random, now: () => performance.now(), log };
        const check = (client) => client.send("PING", []);
        const redis = createRedis({ settings, check, deadlines: createDeadlines(), ...parts });
        console.log(await redis.ask(check));
        redis.close();
      }
      process.exit();`;
    const child = Bun.spawn([process.execPath, "-e", program, url, join(import.meta.dir, "../../src")], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: certificate },
      stdout: "pipe",
    });
    expect(await new Response(child.stdout).text()).toBe("PONG\nPONG\n");
  });
});

describe("away", () => {
  test("killed: whoever asks goes on at once, and it is used again when it is back", async () => {
    const own = await another({});
    const { redis, lines, counts, isBack } = connect(own.url);
    expect(await askedPing(redis)).toBe("PONG");
    await own.kill();
    await waitFor("it is away", async () => (await askedPing(redis)) === undefined && !redis.isThere);
    // At once: not even a promise.
    const asked = Array.from({ length: 1_000 }, () => redis.ask(ping));
    expect(asked.filter((each) => each !== undefined)).toEqual([]);
    expect(counts.unanswered).toBeGreaterThanOrEqual(1_000);
    await own.start();
    await isBack();
    expect(await askedPing(redis)).toBe("PONG");
    expect(lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
      "warn: Redis is away; the gateway goes on without it",
      "info: Redis is back",
    ]);
    expect(counts.returned).toBe(1);
  });

  test("paused: those who asked wait no longer than one command may, together, and nobody after them", async () => {
    const own = await another({});
    const { redis, lines, isBack } = connect(own.url);
    expect(await askedPing(redis)).toBe("PONG");
    own.pause();
    // One after the other they would wait for 100 s.
    const asked = await within("answers", Promise.all(Array.from({ length: 200 }, () => askedPing(redis))));
    expect(new Set(asked)).toEqual(new Set([undefined]));
    expect(redis.ask(ping)).toBeUndefined();
    expect(lines).toEqual([expect.objectContaining({ level: "warn", reason: "no answer in time" })]);
    own.resume();
    await isBack();
    expect(await askedPing(redis)).toBe("PONG");
  });

  test("paused: what a request has waited for it already, for another use, is taken off", async () => {
    const own = await another({});
    const { redis } = connect(own.url, { commandTimeoutMs: 60_000 }, { waitedMs: () => 59_900 });
    expect(await askedPing(redis)).toBe("PONG");
    own.pause();
    expect(await within("an answer", askedPing(redis))).toBeUndefined();
    own.resume();
  });

  test("not there at the start: the first wait no longer, and none after them", async () => {
    const own = await another({});
    own.pause();
    const { redis } = connect(own.url, { connectTimeoutMs: 60_000, commandTimeoutMs: 200 });
    expect(await within("an answer", Promise.all([askedPing(redis), askedPing(redis)]))).toEqual([
      undefined,
      undefined,
    ]);
    expect(redis.ask(ping)).toBeUndefined();
    own.resume();
  });

  test("a server that cannot do what is needed is away until it can", async () => {
    const own = await another({});
    const check = async (client: RedisClient) => void (await client.send("SET", ["check", "1"]));
    await own.send("CONFIG", "SET", "maxmemory", "1");
    const { redis, lines, isBack } = connect(own.url, {}, { check });
    expect(await askedPing(redis)).toBeUndefined();
    expect(lines).toEqual([expect.objectContaining({ reason: "the server answers with the error OOM" })]);
    await own.send("CONFIG", "SET", "maxmemory", "0");
    await isBack();
  });

  test("an idle connection that the server closes is nothing to speak of", async () => {
    const between = door();
    const { redis, lines } = connect(between.url);
    for (let round = 0; round < 20; round++) {
      expect(await askedPing(redis)).toBe("PONG");
      between.cut();
      await waitFor("another connection", async () => {
        const answer = await askedPing(redis);
        return answer === "PONG";
      });
    }
    expect(lines).toEqual([]);
    expect(between.connections).toBeGreaterThan(10);
  });
});

describe("garbage", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const GARBAGE: [string, Uint8Array][] = [
    ["a page", bytes("HTTP/1.1 400 Bad Request\r\n\r\n<html>")],
    ["random bytes", Uint8Array.from({ length: 3_000 }, (_, index) => (index * 7919) % 251)],
    ["an endless text", bytes("$999999999999\r\nabc")],
    ["half a text", bytes("$50\r\nab")],
    ["an endless list", bytes("*2000000000\r\n:1\r\n")],
    ["a deep list", bytes(`${"*1\r\n".repeat(100_000)}:1\r\n`)],
    ["zeros", new Uint8Array(1_000)],
    ["a number that is none", bytes(":99999999999999999999999\r\n")],
    ["nothing", new Uint8Array(0)],
    ["an error", bytes("-NOPERM this user has no permission\r\n")],
    ["something else", bytes("+OK\r\n")],
  ];

  test.each(GARBAGE)("%s is no answer, and the pause after it holds", async (_name, garbage) => {
    const between = door();
    const { redis, lines, isBack } = connect(between.url, { commandTimeoutMs: 300, connectTimeoutMs: 300 });
    const asked = () => redis.ask((client) => checkPing(client).then(() => "good"));
    expect(await asked()).toBe("good");
    between.distort = () => garbage;
    const answers = await within("answers", Promise.all(Array.from({ length: 20 }, asked)));
    expect(new Set(answers)).toEqual(new Set([undefined]));
    expect(redis.isThere).toBe(false);
    expect(asked()).toBeUndefined();
    between.distort = (answer) => answer;
    await isBack();
    expect(await asked()).toBe("good");
    expect(lines.map(({ level }) => level)).toEqual(["warn", "info"]);
  });

  test("a server that lies again whenever it is back is asked ever more seldom", async () => {
    const between = door();
    const { redis, counts } = connect(between.url, { commandTimeoutMs: 200, connectTimeoutMs: 200 });
    expect(await askedPing(redis)).toBe("PONG");
    const untilMs = performance.now() + 3_000;
    while (performance.now() < untilMs) {
      await redis.ask(async () => {
        throw new BadAnswer();
      });
      await Bun.sleep(5);
    }
    // Pauses of about 190, 375, 750 and 1,500 ms.
    expect(counts.returned).toBeGreaterThan(1);
    expect(counts.returned).toBeLessThan(6);
  });
});

test("a further connection may take its time to open: the others answer meanwhile", async () => {
  const slow = door();
  const { redis, lines, counts } = connect(slow.url, { commandTimeoutMs: 1_000, connectTimeoutMs: 20_000 });
  expect(await askedPing(redis)).toBe("PONG");
  const HELLO = "%".charCodeAt(0);
  slow.distort = (bytes) => (bytes[0] === HELLO ? Bun.sleep(2_000).then(() => bytes) : bytes);
  const pings = () => Promise.all(Array.from({ length: 20 }, () => askedPing(redis)));
  expect(new Set(await pings())).toEqual(new Set(["PONG"]));
  await waitFor("all connections are used", async () => {
    await pings();
    return slow.connections === 4;
  });
  expect([lines, counts.unanswered, redis.isThere]).toEqual([[], 0, true]);
});

test("a server that takes no further connection is asked over those that there are", async () => {
  const full = await another({});
  const { redis, lines, counts } = connect(full.url);
  expect(await redis.ask((client) => client.send("CONFIG", ["SET", "maxclients", "1"]))).toBe("OK");
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => askedPing(redis)));
    expect(new Set(answers)).toEqual(new Set(["PONG"]));
  }
  expect([lines, counts.unanswered, redis.isThere]).toEqual([[], 0, true]);
  const refused = /rejected_connections:(\d+)/;
  const info = String(await redis.ask((client) => client.send("INFO", ["stats"])));
  expect(Number(refused.exec(info)?.[1])).toBeWithin(1, 10); // it is not asked again and again
});

test("no more commands wait than there is room for", async () => {
  const between = door();
  const { redis } = connect(between.url, { commandTimeoutMs: 1_000 });
  expect(await askedPing(redis)).toBe("PONG");
  between.distort = async (answer) => {
    await Bun.sleep(100);
    return answer;
  };
  const asked = Array.from({ length: MAX_WAITING + 100 }, () => redis.ask(ping));
  expect(asked.filter((each) => each === undefined)).toHaveLength(100);
  expect(new Set(await Promise.all(asked.slice(0, MAX_WAITING)))).toEqual(new Set(["PONG"]));
  const many = 30 * 1024 * 1024;
  const large = [many, many, many].map((size) => redis.ask(ping, size));
  expect(large.map((each) => each !== undefined)).toEqual([true, true, false]);
  await Promise.all(large);
  expect(between.connections).toBeLessThanOrEqual(4);
});

test("closed, it answers nobody, and nothing of it is left", async () => {
  const own = await another({});
  const { redis } = connect(own.url, { commandTimeoutMs: 60_000 });
  expect(await askedPing(redis)).toBe("PONG");
  own.pause();
  const waiting = askedPing(redis);
  redis.close();
  expect(await within("an end", waiting)).toBeUndefined();
  expect(redis.ask(ping)).toBeUndefined();
  own.resume();
  await waitFor("no connection is left", async () =>
    /connected_clients:1\b/.test(String(await own.send("INFO", "clients"))),
  );
});
