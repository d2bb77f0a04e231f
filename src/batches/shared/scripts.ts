// What Redis does for batches that several gateways run, each step as one script: rows and their lists, segments that a gateway
// claims under a lease, results of lines, and who takes an input in or writes the results. Times are the server's. A claim and a
// lease have a token, which no other one has: what is written under a token that is no longer in force is refused.

import { redisScript } from "../../redis/script.ts";

const PRELUDE = `
local P = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function whole(number) return string.format('%.0f', number) end
local function key(kind, id) return P .. kind .. ':' .. id end
local COUNTS = {'completed', 'failed', 'input', 'cachedInput', 'output', 'reasoning', 'cost'}
local function counts(id) return redis.call('HMGET', key('row', id), unpack(COUNTS)) end
local function row(id)
  local found = redis.call('HMGET', key('row', id), 'facts', 'version', 'closing')
  if not found[1] then return false end
  return {id, found[1], found[2], found[3], counts(id)}
end
local function isOwner(id, segment, token) return redis.call('HGET', key('owners', id), segment) == token end
local function removeWork(id)
  for segment = 0, tonumber(redis.call('HGET', key('row', id), 'segments') or '0') - 1 do
    redis.call('DEL', key('segment', id .. ':' .. segment))
  end
  redis.call('DEL', key('todo', id), key('claims', id), key('owners', id), key('done', id))
end
local function list(id, owner, format, sequence)
  redis.call('ZADD', P .. 'all', sequence, id)
  redis.call('ZADD', key('of', owner .. ':' .. format), sequence, id)
end
local function remove(id)
  local place = redis.call('HMGET', key('row', id), 'owner', 'format')
  if not place[1] then return end
  removeWork(id)
  redis.call('ZREM', P .. 'all', id)
  redis.call('ZREM', P .. 'open', id)
  redis.call('ZREM', P .. 'ended', id)
  redis.call('ZREM', key('open', place[1]), id)
  redis.call('ZREM', key('of', place[1] .. ':' .. place[2]), id)
  redis.call('DEL', key('row', id))
end
`;

const script = (source: string) => redisScript(PRELUDE + source);

/**
 * Says that a gateway is there: claims are not taken over before a lease has passed since a time in which no gateway was heard
 * of, as while the server was away. Answers with the open batches.
 */
export const BEAT = script(`
local last = tonumber(redis.call('GET', P .. 'beat') or '0')
if now - last > tonumber(ARGV[1]) then redis.call('SET', P .. 'resumed', whole(now)) end
redis.call('SET', P .. 'beat', whole(now))
local open = {}
for _, id in ipairs(redis.call('ZRANGE', P .. 'open', 0, ARGV[2] - 1)) do
  local found = redis.call('HMGET', key('row', id), 'version', 'closing')
  open[#open + 1] = {id, found[1], found[2], counts(id)}
end
return {redis.call('EXISTS', P .. 'life'), redis.call('ZCARD', P .. 'open'), open}
`);

/** 0: the owner has too many open ones; -1: the server has lost its data, and they are not restored yet. */
export const INSERT = script(`
local id, owner, format, facts, status, max, segments = unpack(ARGV)
if redis.call('EXISTS', P .. 'life') == 0 then return -1 end
if redis.call('EXISTS', key('row', id)) == 1 then return 1 end
if redis.call('ZCARD', key('open', owner)) >= tonumber(max) then return 0 end
local sequence = whole(math.max(tonumber(redis.call('GET', P .. 'sequence') or '0') + 1, now))
redis.call('SET', P .. 'sequence', sequence)
redis.call('HSET', key('row', id), 'owner', owner, 'format', format, 'facts', facts, 'status', status, 'version', 1)
redis.call('HSET', key('row', id), 'segments', segments)
for segment = 0, segments - 1 do redis.call('ZADD', key('todo', id), segment, segment) end
redis.call('ZADD', P .. 'open', sequence, id)
redis.call('ZADD', key('open', owner), sequence, id)
list(id, owner, format, sequence)
return 1
`);

/** Brings one back that the server has lost. Nothing where it is there. */
export const RESTORE = script(`
local id, owner, format, facts, status, segments, sequence, ended = unpack(ARGV)
if redis.call('EXISTS', key('row', id)) == 1 then return 0 end
redis.call('HSET', key('row', id), 'owner', owner, 'format', format, 'facts', facts, 'status', status, 'version', 1)
redis.call('HSET', key('row', id), 'segments', segments)
for index, name in ipairs(COUNTS) do redis.call('HSET', key('row', id), name, ARGV[8 + index]) end
list(id, owner, format, sequence)
if ended ~= '' then
  redis.call('HSET', key('row', id), 'ended', ended)
  redis.call('ZADD', P .. 'ended', ended, id)
  return 1
end
redis.call('ZADD', P .. 'open', sequence, id)
redis.call('ZADD', key('open', owner), sequence, id)
for index = 16, #ARGV, 2 do redis.call('HSET', key('done', id), ARGV[index], ARGV[index + 1]) end
for segment = 0, segments - 1 do
  if redis.call('HEXISTS', key('done', id), segment) == 0 then
    redis.call('ZADD', key('todo', id), segment, segment)
    redis.call('HSET', key('segment', id .. ':' .. segment), 'lost', 1)
  end
end
return 1
`);

export const READ = script(`
return row(ARGV[1])
`);

/** A page of a list, from behind a batch, or up to the one before it: then the nearest comes first. */
export const PAGE = script(`
local place, from, direction, limit = unpack(ARGV)
local score = from ~= '' and redis.call('ZSCORE', P .. place, from)
local ids
if direction == 'newer' and score then
  ids = redis.call('ZRANGEBYSCORE', P .. place, '(' .. score, '+inf', 'LIMIT', 0, limit)
else
  direction = 'older'
  ids = redis.call('ZREVRANGEBYSCORE', P .. place, score and '(' .. score or '+inf', '-inf', 'LIMIT', 0, limit)
end
local rows = {}
for _, id in ipairs(ids) do
  local found = row(id)
  if found then rows[#rows + 1] = found end
end
return {direction, rows}
`);

/** 0: another gateway was quicker; 2: it can no longer be cancelled. */
export const CANCEL = script(`
local id, version, facts = unpack(ARGV)
local found = redis.call('HMGET', key('row', id), 'version', 'status', 'closing')
if found[1] ~= version then return 0 end
if found[3] or (found[2] ~= 'validating' and found[2] ~= 'in_progress') then return 2 end
redis.call('HSET', key('row', id), 'status', 'cancelling', 'facts', facts)
redis.call('HINCRBY', key('row', id), 'version', 1)
return 1
`);

/** Takes or renews the lease of a step: 'mine', 'busy' (another gateway does it), 'past' (it is done), 'gone'. */
export const OWN = script(`
local id, token, lease, step = unpack(ARGV)
local held = redis.call('HMGET', key('row', id), 'lease', 'lease_until', 'status', 'ended')
if not held[3] then return redis.call('EXISTS', P .. 'life') == 1 and 'gone' or 'busy' end
if held[4] or (step == 'intake' and held[3] ~= 'validating') then return 'past' end
if held[1] and held[1] ~= token and tonumber(held[2]) > now then return 'busy' end
if step == 'finish' and held[1] ~= token then
  redis.call('HSET', key('row', id), 'closing', 1)
  if redis.call('ZCOUNT', key('claims', id), whole(now), '+inf') > 0 then return 'busy' end
  redis.call('DEL', key('owners', id))
end
redis.call('HSET', key('row', id), 'lease', token, 'lease_until', whole(now + lease))
return 'mine'
`);

export const LET = script(`
if redis.call('HGET', key('row', ARGV[1]), 'lease') == ARGV[2] then redis.call('HDEL', key('row', ARGV[1]), 'lease') end
return 1
`);

/** Under the lease of a step. 0: it is another gateway's, or the batch was cancelled meanwhile. */
export const UPDATE = script(`
local id, token, facts, status, from, segments, failed, ended = unpack(ARGV)
local held = redis.call('HMGET', key('row', id), 'lease', 'status', 'owner', 'facts')
if held[4] == facts then return 1 end
if held[1] ~= token or (from ~= '' and held[2] ~= from) then return 0 end
redis.call('HSET', key('row', id), 'facts', facts, 'status', status)
redis.call('HINCRBY', key('row', id), 'version', 1)
if from ~= '' then
  redis.call('HSET', key('row', id), 'segments', segments, 'failed', failed)
  for segment = 0, segments - 1 do redis.call('ZADD', key('todo', id), segment, segment) end
end
if ended ~= '' then
  removeWork(id)
  redis.call('HSET', key('row', id), 'ended', ended)
  redis.call('HDEL', key('row', id), 'closing')
  redis.call('ZREM', P .. 'open', id)
  redis.call('ZREM', key('open', held[3]), id)
  redis.call('ZADD', P .. 'ended', ended, id)
end
return 1
`);

/** Removes one that has ended. */
export const REMOVE = script(`
if not redis.call('HGET', key('row', ARGV[1]), 'ended') then return 0 end
remove(ARGV[1])
return 1
`);

/** Removes some that have ended before a time; answers with their ids. */
export const SWEEP = script(`
local ids = redis.call('ZRANGEBYSCORE', P .. 'ended', '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do remove(id) end
return ids
`);

/** A segment to work on: one whose claim is over, or one that no gateway has had; 'done' where all have their results. */
export const CLAIM = script(`
local id, token, lease = unpack(ARGV)
local found = redis.call('HMGET', key('row', id), 'status', 'closing')
if found[1] ~= 'in_progress' or found[2] then return {'none'} end
local claims, todo = key('claims', id), key('todo', id)
local segment
if now - tonumber(redis.call('GET', P .. 'resumed') or '0') >= tonumber(lease) then
  segment = redis.call('ZRANGEBYSCORE', claims, '-inf', whole(now), 'LIMIT', 0, 1)[1]
end
if not segment then segment = redis.call('ZPOPMIN', todo)[1] end
if not segment then return {redis.call('ZCARD', claims) == 0 and 'done' or 'none'} end
redis.call('ZADD', claims, whole(now + lease), segment)
redis.call('HSET', key('owners', id), segment, token)
return {'claimed', segment, redis.call('HKEYS', key('segment', id .. ':' .. segment))}
`);

/** Lengthens claims, which are pairs of segment and token; answers with the segments that are no longer claimed by them. */
export const RENEW = script(`
local id, lease = ARGV[1], ARGV[2]
local lost = {}
for index = 3, #ARGV, 2 do
  if isOwner(id, ARGV[index], ARGV[index + 1]) then
    redis.call('ZADD', key('claims', id), whole(now + lease), ARGV[index])
  else
    lost[#lost + 1] = ARGV[index]
  end
end
return lost
`);

/** Gives a segment back; what its lines have stays. */
export const RELEASE = script(`
local id, segment, token = unpack(ARGV)
if not isOwner(id, segment, token) then return 0 end
redis.call('HDEL', key('owners', id), segment)
redis.call('ZREM', key('claims', id), segment)
redis.call('ZADD', key('todo', id), segment, segment)
return 1
`);

/** Notes a line as begun. 0: the claim is over; -1: no further line of the batch is asked. */
export const BEGIN = script(`
local id, segment, token, position = unpack(ARGV)
local found = redis.call('HMGET', key('row', id), 'status', 'closing')
if not isOwner(id, segment, token) then return 0 end
if found[1] ~= 'in_progress' or found[2] then return -1 end
redis.call('HSET', key('segment', id .. ':' .. segment), 'b' .. position, 1)
return 1
`);

/** Keeps the result of a line, and counts it once. Answers with the counts of the batch; nil: the claim is over. */
export const SETTLE = script(`
local id, segment, token, position, record, outcome = unpack(ARGV)
if not isOwner(id, segment, token) then return false end
if redis.call('HSETNX', key('segment', id .. ':' .. segment), 'r' .. position, record) == 1 then
  redis.call('HINCRBY', key('row', id), outcome, 1)
  for index = 3, #COUNTS do redis.call('HINCRBY', key('row', id), COUNTS[index], ARGV[4 + index]) end
end
return counts(id)
`);

/** The results of a segment are in the bucket, under a name. 0: the claim is over. */
export const COMPLETE = script(`
local id, segment, token, name = unpack(ARGV)
if redis.call('HGET', key('done', id), segment) == name then return 1 end
if not isOwner(id, segment, token) then return 0 end
redis.call('HSET', key('done', id), segment, name)
redis.call('HDEL', key('owners', id), segment)
redis.call('ZREM', key('claims', id), segment)
redis.call('DEL', key('segment', id .. ':' .. segment))
return 1
`);
