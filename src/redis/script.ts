// Scripts that a Redis server runs: sent by their digest, and whole to a server that does not know them yet.

import { lazily } from "../lib/lazily.ts";
import { serverErrorWord } from "./fault.ts";
import type { RedisClient } from "./redis.ts";

type RunScript = (client: RedisClient, keys: readonly string[], values: readonly string[]) => Promise<unknown>;

export function redisScript(source: string): RunScript {
  const digest = lazily(() => new Bun.CryptoHasher("sha1").update(source).digest("hex"));
  return async (client, keys, values) => {
    const rest = [String(keys.length), ...keys, ...values];
    try {
      return await client.send("EVALSHA", [digest(), ...rest]);
    } catch (error) {
      if (serverErrorWord(error) !== "NOSCRIPT") throw error;
      return await client.send("EVAL", [source, ...rest]);
    }
  };
}
