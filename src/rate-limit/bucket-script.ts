// The token buckets in Redis: one script that takes a token of each, or of none, by the server's clock. The arithmetic is
// that of token-bucket.ts, in the same whole numbers.

import { BadAnswer } from "../redis/fault.ts";
import type { RedisClient } from "../redis/redis.ts";
import { redisScript } from "../redis/script.ts";
import type { BucketPolicy } from "./token-bucket.ts";

/** take: one token of each or none. look: what take would find. put: gives the token of each back. */
export type BucketMode = "take" | "look" | "put";

interface SharedBucket {
  /** The bucket's key in Redis. */
  key: string;
  policy: BucketPolicy;
}

/** `parts` are those of the bucket that speaks: of a refusal the one with the longest wait, else the one with the fewest tokens left. */
interface BucketReply {
  allowed: boolean;
  index: number;
  parts: number;
}

/**
 * A bucket is the text "parts time", and nothing once it is full: then it ends by itself. What is no such text is a full
 * bucket, too. A clock that goes back earns nothing, and counts from there: it may have been far ahead.
 */
const SCRIPT = `
local mode, turn = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local parts, policies, known = {}, {}, {}
local refusing, longest = 0, 0
for i, key in ipairs(KEYS) do
  local at = 3 + (i - 1) * 4
  local policy = { tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]) }
  local earned, token, full, fill = policy[1], policy[2], policy[3], policy[4]
  policies[i] = policy
  parts[i] = full
  local kept = redis.pcall('GET', key)
  if type(kept) == 'string' then
    local left, since = string.match(kept, '^(%d+) (%d+)$')
    left, since = tonumber(left), tonumber(since)
    if left and since then
      known[i] = true
      local elapsed = math.max(0, now - since)
      if elapsed < fill then parts[i] = math.min(full, left + elapsed * earned) end
    end
  end
  if parts[i] < token then
    local wait = math.ceil((token - parts[i]) / earned)
    if wait > longest then refusing, longest = i, wait end
  end
end
if mode ~= 'put' and refusing > 0 then return { turn, 0, refusing, parts[refusing] } end
local tightest, fewest = 1, math.huge
for i, key in ipairs(KEYS) do
  local earned, token, full = policies[i][1], policies[i][2], policies[i][3]
  if mode == 'take' then parts[i] = parts[i] - token end
  if mode == 'put' then parts[i] = math.min(full, parts[i] + token) end
  if mode ~= 'look' and (mode == 'take' or known[i]) then
    local untilFull = math.ceil(math.ceil((full - parts[i]) / earned) / 1000)
    if untilFull <= 0 then redis.call('DEL', key)
    else redis.call('SET', key, string.format('%.0f %.0f', parts[i], now), 'PX', string.format('%.0f', untilFull)) end
  end
  if parts[i] / token < fewest then tightest, fewest = i, parts[i] / token end
end
return { turn, 1, tightest, parts[tightest] }
`;

const runScript = redisScript(SCRIPT);

/** `turn` tells an answer from those to others. */
export async function runBuckets(
  client: RedisClient,
  mode: BucketMode,
  buckets: readonly SharedBucket[],
  turn: string,
): Promise<BucketReply> {
  const values = [mode, turn];
  for (const { policy } of buckets) {
    const { earnedPerUs, partsPerToken, fullParts, fillUs } = policy;
    for (const number of [earnedPerUs, partsPerToken, fullParts, fillUs]) values.push(String(number));
  }
  const keys = buckets.map(({ key }) => key);
  return readReply(await runScript(client, keys, values), buckets, turn);
}

function readReply(reply: unknown, buckets: readonly SharedBucket[], turn: string): BucketReply {
  if (!Array.isArray(reply) || reply.length !== 4 || reply[0] !== turn) throw new BadAnswer();
  const [, flag, place, parts] = reply as unknown[];
  const policy = buckets[Number(place) - 1]?.policy;
  const isSane =
    policy !== undefined && Number.isInteger(place) && Number.isSafeInteger(parts) && (flag === 0 || flag === 1);
  if (!isSane || Number(parts) < 0 || Number(parts) > policy.fullParts) throw new BadAnswer();
  const allowed = flag === 1;
  if (!allowed && Number(parts) >= policy.partsPerToken) throw new BadAnswer();
  return { allowed, index: Number(place) - 1, parts: Number(parts) };
}
