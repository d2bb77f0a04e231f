// What gateways with one queue have in Redis: the lease of its owner, who is there, and an inbox for each of them.

import { BadAnswer } from "../redis/fault.ts";
import type { RedisClient } from "../redis/redis.ts";
import { redisScript } from "../redis/script.ts";

/** A gateway that was not heard of for so long is gone: another one becomes the owner, and its slots are free. */
export const LEASE_MS = 3_000;
/** In an inbox; a reader that is so far behind asks to be told again. */
const MOST_ENVELOPES = 128;
/** An inbox that gets nothing is removed. */
const INBOX_MS = 30_000;

export interface Beat {
  owner: string;
  /** Every owner has a higher one than all owners before it. */
  generation: number;
  /** Gateways that are there, this one included. */
  members: readonly string[];
  /** By the server's clock. */
  serverMs: number;
}

/**
 * The lease is taken where it is free, and renewed where it is this gateway's under the generation that it knows. Generations are
 * the server's time where that is later, so that they grow as well after the server has lost its data.
 */
const BEAT = redisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = tonumber(ARGV[2])
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[3] .. ' ' .. ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], lease)
elseif not owner or string.sub(owner, -#ARGV[1] - 1) == ' ' .. ARGV[1] then
  local last = tonumber(redis.call('GET', KEYS[3]) or '0')
  local generation = string.format('%.0f', math.max(last + 1, now))
  redis.call('SET', KEYS[3], generation)
  owner = generation .. ' ' .. ARGV[1]
  redis.call('SET', KEYS[1], owner, 'PX', lease)
end
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - lease)
redis.call('PEXPIRE', KEYS[2], lease)
return {owner, redis.call('ZRANGE', KEYS[2], 0, -1), string.format('%.0f', now)}
`);

const LEAVE = redisScript(`
local owner = redis.call('GET', KEYS[1])
if owner and string.sub(owner, -#ARGV[1] - 1) == ' ' .. ARGV[1] then redis.call('DEL', KEYS[1]) end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('DEL', KEYS[3])
return 1
`);

const POST = redisScript(`
redis.call('XADD', KEYS[1], 'MAXLEN', '=', ARGV[2], '*', 'm', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`);

const ownerKey = (prefix: string) => `${prefix}queue-owner`;
const membersKey = (prefix: string) => `${prefix}queue-members`;
const inboxKey = (prefix: string, id: string) => `${prefix}queue-inbox:${id}`;

/** @param generation - that of the lease which this gateway has; undefined: it has none */
export async function beat(
  client: RedisClient,
  prefix: string,
  id: string,
  generation: number | undefined,
): Promise<Beat> {
  const keys = [ownerKey(prefix), membersKey(prefix), `${prefix}queue-generation`];
  const answer = await BEAT(client, keys, [id, String(LEASE_MS), String(generation ?? "")]);
  if (!Array.isArray(answer)) throw new BadAnswer();
  const [lease, members, serverMs] = answer as unknown[];
  const found = typeof lease === "string" ? /^(\d{1,15}) (\S+)$/.exec(lease) : null;
  if (found === null || !isTexts(members) || !Number.isFinite(Number(serverMs))) throw new BadAnswer();
  return { generation: Number(found[1]), owner: found[2] as string, members, serverMs: Number(serverMs) };
}

export async function leave(client: RedisClient, prefix: string, id: string): Promise<true> {
  await LEAVE(client, [ownerKey(prefix), membersKey(prefix), inboxKey(prefix, id)], [id]);
  return true;
}

/** Asks nothing; shows whether the server is there. */
export async function look(client: RedisClient, prefix: string, id: string): Promise<true> {
  await client.send("XLEN", [inboxKey(prefix, id)]);
  return true;
}

/** Puts a text into the inbox of a gateway. */
export async function post(client: RedisClient, prefix: string, to: string, text: string): Promise<true> {
  await POST(client, [inboxKey(prefix, to)], [text, String(MOST_ENVELOPES), String(INBOX_MS)]);
  return true;
}

/** Before all that is in an inbox. */
export const INBOX_BEGIN = "0-0";

export interface Received {
  id: string;
  text: string;
}

/** What has come behind an entry; waits so long for some. */
export async function receive(
  client: RedisClient,
  prefix: string,
  id: string,
  after: string,
  blockMs: number | undefined,
): Promise<Received[]> {
  const key = inboxKey(prefix, id);
  const block = blockMs === undefined ? [] : ["BLOCK", String(blockMs)];
  const answer: unknown = await client.send("XREAD", ["COUNT", "64", ...block, "STREAMS", key, after]);
  if (answer === null) return [];
  const entries = (answer as Record<string, unknown>)[key];
  if (!Array.isArray(entries)) throw new BadAnswer();
  return entries.map((entry: unknown) => {
    const [entryId, fields] = Array.isArray(entry) ? entry : [];
    const text = Array.isArray(fields) ? fields[1] : undefined;
    if (typeof entryId !== "string" || typeof text !== "string") throw new BadAnswer();
    return { id: entryId, text };
  });
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
