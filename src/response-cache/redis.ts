// The response cache in Redis, shared by gateways. While the server is away, answers are kept in memory instead, or not at
// all; no request is refused for it, or waits longer than for one command.

import { BadAnswer, serverErrorWord } from "../redis/fault.ts";
import type { Redis, RedisClient } from "../redis/redis.ts";
import {
  type AnswerForm,
  type CachedAnswer,
  type CacheStatistics,
  ClearedHereOnly,
  type RequestKey,
  type ResponseCache,
} from "./cache.ts";
import { ModelCounters } from "./model-counters.ts";
import { decodeAnswer, encodeAnswer, isAnswerName, nameOf, namesOfModel } from "./redis-answer.ts";

interface RedisCacheParts {
  redis: Redis;
  /** Begins every name. */
  prefix: string;
  /** Used while the server is away. */
  fallback: Pick<ResponseCache, "get" | "put" | "clear"> | undefined;
  now(): number;
}

const NOTHING = Symbol("no answer kept");

/** How many names the server looks at in one turn while answers are forgotten, and how long that may take. */
const SCANNED_NAMES = 500;
const MAX_CLEAR_MS = 60_000;

/** The first command of a connection: that the server stores, and answers. */
export async function checkCache(client: RedisClient, prefix: string): Promise<void> {
  const [stored, found] = await Promise.all([
    client.send("SET", [`${prefix}check`, "1", "PX", "1000"]),
    client.getBuffer(`${prefix}check`),
  ]);
  if (stored !== "OK" || (found !== null && found.length !== 1)) throw new BadAnswer();
}

export function createRedisCache({ redis, prefix, fallback, now }: RedisCacheParts) {
  const models = new ModelCounters(null);
  const total = { hits: 0, misses: 0, stores: 0 };

  function counted(found: CachedAnswer | undefined, model: string): CachedAnswer | undefined {
    const what = found === undefined ? "misses" : "hits";
    total[what]++;
    models.of(model)[what]++;
    return found;
  }

  /** The answer in one form; both forms are asked for in one round trip. */
  async function read(client: RedisClient, name: string): Promise<Uint8Array | null> {
    try {
      return await client.getBuffer(prefix + name);
    } catch (error) {
      if (serverErrorWord(error) === "WRONGTYPE") return null; // a key of another program
      throw error;
    }
  }

  async function find(client: RedisClient, key: RequestKey, model: string): Promise<CachedAnswer | typeof NOTHING> {
    const name = nameOf(key, model);
    const forms = [key.form, key.otherForm].filter((form): form is AnswerForm => form !== undefined);
    const reads = forms.map((form) => read(client, name(form)));
    for (const found of await Promise.all(reads)) {
      const answer = found === null ? undefined : decodeAnswer(key, model, found);
      if (answer !== undefined) return answer;
    }
    return NOTHING;
  }

  async function getWithout(key: RequestKey, model: string): Promise<CachedAnswer | undefined> {
    return counted(await fallback?.get(key, model), model);
  }

  /** The next place to scan from, and how many were forgotten. */
  async function clearSome(client: RedisClient, from: string, pattern: string): Promise<[string, number]> {
    const page = await client.send("SCAN", [from, "MATCH", pattern, "COUNT", String(SCANNED_NAMES)]);
    if (!Array.isArray(page) || !/^\d{1,20}$/.test(String(page[0])) || !Array.isArray(page[1])) throw new BadAnswer();
    const names = page[1]
      .map(String)
      .filter((name) => name.startsWith(prefix) && isAnswerName(name.slice(prefix.length)));
    const removed = names.length === 0 ? 0 : await client.send("UNLINK", names);
    if (!Number.isInteger(removed) || removed < 0 || removed > names.length) throw new BadAnswer();
    return [String(page[0]), removed];
  }

  return {
    get(key, model) {
      const asked = redis.ask((client) => find(client, key, model));
      if (asked === undefined) return getWithout(key, model);
      return asked.then((found) => {
        if (found === undefined) return getWithout(key, model);
        return counted(found === NOTHING ? undefined : found, model);
      });
    },

    async put(key, answer, ttlMs) {
      const name = prefix + nameOf(key, answer.model)(key.form);
      const bytes = encodeAnswer(key, answer);
      const isStored = await redis.ask(async (client) => {
        const stored = await client.set(name, bytes, "PX", Math.ceil(ttlMs));
        if (stored !== "OK") throw new BadAnswer();
        return true;
      }, bytes.length);
      if (isStored || fallback !== undefined) {
        total.stores++;
        models.of(answer.model).stores++;
      }
      if (!isStored) await fallback?.put(key, answer, ttlMs);
    },

    async clear(model) {
      let cleared = (await fallback?.clear(model)) ?? 0;
      const pattern = `${literally(prefix)}${model === undefined ? "" : namesOfModel(model)}*`;
      const untilMs = now() + MAX_CLEAR_MS;
      let from = "0";
      do {
        const turn = now() < untilMs ? await redis.ask((client) => clearSome(client, from, pattern)) : undefined;
        if (turn === undefined) throw new ClearedHereOnly();
        cleared += turn[1];
        from = turn[0];
      } while (from !== "0");
      return cleared;
    },

    stats(): CacheStatistics {
      return {
        backend: "redis",
        connected: redis.isThere,
        capacity: null,
        maxBytes: null,
        entries: null,
        bytes: null,
        ...total,
        evictions: null,
        expirations: null,
        models: models.list(),
      };
    },
  } satisfies ResponseCache;
}

/** The text as a pattern that means nothing but itself. */
function literally(text: string): string {
  return text.replace(/[*?[\]^\\-]/g, "\\$&");
}
