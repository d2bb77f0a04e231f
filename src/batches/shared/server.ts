// Asks the Redis server that gateways share their batches by. Without an answer in time it throws a refusal, which work under way
// waits out (patience.ts) and requests are answered with.

import type { Redis, RedisClient } from "../../redis/redis.ts";
import { batchTrouble } from "../batch-trouble.ts";

export interface BatchServerParts {
  redis(): Redis | undefined;
  /** rate_limiting.redis.key_prefix */
  keyPrefix(): string;
}

type Script = (client: RedisClient, keys: readonly string[], values: readonly string[]) => Promise<unknown>;

export type BatchServer = ReturnType<typeof createBatchServer>;

export function createBatchServer({ redis, keyPrefix }: BatchServerParts) {
  const prefix = () => `${keyPrefix()}batches:`;

  async function ask<Answer>(command: (client: RedisClient) => Promise<Answer>, bytes = 0): Promise<Answer> {
    const answer = await redis()?.ask(async (client) => ({ value: await command(client) }), bytes);
    if (answer === undefined) throw batchTrouble(new Error("Redis is away"));
    return answer.value;
  }

  return {
    run(script: Script, ...values: (string | number)[]): Promise<unknown> {
      const texts = values.map(String);
      const bytes = texts.reduce((sum, text) => sum + text.length, 0);
      return ask((client) => script(client, [prefix()], texts), bytes);
    },
    /** Fields of a hash; null where there is none. */
    async fields(kind: string, id: string, names: readonly string[]): Promise<(string | null)[]> {
      return (await ask((client) => client.send("HMGET", [`${prefix()}${kind}:${id}`, ...names]))) as (string | null)[];
    },
    async fieldNames(kind: string, id: string): Promise<string[]> {
      return (await ask((client) => client.send("HKEYS", [`${prefix()}${kind}:${id}`]))) as string[];
    },
    /** True where it was not set, and is for so long now. */
    async take(name: string, value: string, forMs: number): Promise<boolean> {
      const given = [`${prefix()}${name}`, value, "NX", "PX", String(forMs)];
      return (await ask((client) => client.send("SET", given))) === "OK";
    },
    async set(name: string, value: string): Promise<void> {
      await ask((client) => client.send("SET", [`${prefix()}${name}`, value]));
    },
    async remove(name: string): Promise<void> {
      await ask((client) => client.send("DEL", [`${prefix()}${name}`]));
    },
  };
}
