// The budgets in Redis: one script that merges what each gateway has spent and set aside, and decides by the server's clock. All
// values that a gateway sends are totals of its own, so that no value counts twice, however often it is sent.

import { BadAnswer } from "../redis/fault.ts";
import type { RedisClient } from "../redis/redis.ts";
import { redisScript } from "../redis/script.ts";
import { AMOUNT_NAMES, type AmountName, type Amounts } from "./amounts.ts";

/** What was spent in one span of a window. Times in milliseconds since 1970. */
export interface SpentSlot extends Amounts {
  fromMs: number;
  endsMs: number;
}

/** follow: that of the server holds. first: the later one holds. change: this one holds. */
export type ResetMode = "follow" | "first" | "change";

interface SharedAccount {
  key: string;
  /** The span that counts now; the server refuses where its clock is far from it. */
  fromMs: number;
  untilMs: number;
  resetAtMs: number;
  resetMode: ResetMode;
  /** What this data folder has spent, where the server may not know of it. */
  spent: readonly SpentSlot[];
  /** What all have spent, as this process knows it: that much counts while the server is young. */
  known: Readonly<Amounts>;
  /** What this process has set aside. */
  held: Readonly<Amounts>;
  /** Where the rule keeps the names of its subjects, and the name of this one; undefined: it is there already. */
  listed: { key: string; subject: string } | undefined;
}

interface SharedLimit {
  name: AmountName;
  most: number;
  /** True: what is set aside, and what is asked for, count too. */
  isExact: boolean;
}

/** Places are those in the list of the accounts. */
interface SharedOrder {
  bound: Readonly<Amounts>;
  accounts: readonly number[];
  /** Those that may refuse, in the order in which they are asked. */
  refusing: readonly { account: number; limits: readonly SharedLimit[] }[];
}

export interface BudgetCall {
  /** This process; and the number of its call: the server drops one that comes behind a later one. */
  holder: string;
  number: number;
  /** The data folder. */
  folder: string;
  /** What is set aside is given back so long after the last call. */
  leaseMs: number;
  /** When the server began to know of any holder, as far as it is known: it tells where it is another one. */
  sinceMs: number;
  accounts: readonly SharedAccount[];
  orders: readonly SharedOrder[];
}

export interface SharedState {
  resetAtMs: number;
  heldByOthers: Amounts;
  /** Of all data folders together. */
  spent: SpentSlot[];
}

export type SharedReply =
  /** Nothing was done: a span is far from the server's clock, a budget was reset by another gateway, or the server is a new one. */
  | { isDone: false; nowMs: number; sinceMs: number; resets: (number | undefined)[] }
  /** `refusals`: for each order the account and the limit that refuse it; undefined: it is granted. */
  | {
      isDone: true;
      nowMs: number;
      sinceMs: number;
      /** The server has begun from nothing: not every gateway may have told it again. */
      isYoung: boolean;
      accounts: SharedState[];
      refusals: ({ account: number; limit: number } | undefined)[];
    };

/**
 * A hash for each account: "reset"; "h HOLDER", what a process has set aside; "s FROM FOLDER", what a data folder has spent in a
 * span, which only grows. KEYS[1] is a hash of all holders: how long each is taken to live, and its last call; and
 * "since", when the server began to know of any.
 */
const SCRIPT = `
local call = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function text(numbers)
  local written = {}
  for i, number in ipairs(numbers) do written[i] = string.format('%.0f', number) end
  return table.concat(written, ' ')
end
local function read(written, count)
  local numbers = {}
  for number in string.gmatch(written, '%d+') do numbers[#numbers + 1] = tonumber(number) end
  if #numbers == count then return numbers end
end
local function add(to, from, first)
  for i = 1, 4 do to[i] = math.min(to[i] + from[first + i - 1], 9007199254740991) end
end
local function amount(of, name)
  if name == 1 then return of[1] end
  if name == 2 then return of[2] + of[3] end
  return of[name - 1]
end
local living = {}
local holders = redis.call('HGETALL', KEYS[1])
local since = now
for i = 1, #holders, 2 do
  if holders[i] == 'since' then since = tonumber(holders[i + 1]) or now end
end
for i = 1, #holders, 2 do
  local lease = read(holders[i + 1], 2)
  if lease and holders[i] == call.holder and lease[2] >= call.number then return redis.error_reply('LATE call') end
  if lease and lease[1] > now then living[holders[i]] = true elseif holders[i] ~= 'since' then redis.call('HDEL', KEYS[1], holders[i]) end
end
local isDone, resets = 1, {}
local isYoung = now - since < call.young
if since ~= call.since then isDone = 0 end
for i, account in ipairs(call.accounts) do
  local stored = tonumber(redis.call('HGET', KEYS[i + 1], 'reset') or '')
  local reset = account.reset
  if stored and (account.mode == 'follow' or (account.mode == 'first' and stored > reset)) then reset = stored end
  resets[i] = reset
  if reset ~= account.reset or now < account.from - call.slack or now >= account.till + call.slack then isDone = 0 end
end
if isDone == 0 then
  redis.call('HSET', KEYS[1], 'since', text({ since }))
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', 10 * call.lease))
  return { ARGV[2], 0, now, since, resets }
end
local states, held, spent = {}, {}, {}
for i, account in ipairs(call.accounts) do
  local key = KEYS[i + 1]
  local reset = resets[i]
  if reset > 0 or account.mode == 'change' then redis.call('HSET', key, 'reset', text({ reset })) end
  for _, slot in ipairs(account.spent) do
    local field = 's ' .. text({ slot[1] }) .. ' ' .. call.folder
    local before = read(redis.call('HGET', key, field) or '', 5)
    if before then for place = 2, 6 do slot[place] = math.max(slot[place], before[place - 1]) end end
    redis.call('HSET', key, field, text({ slot[2], slot[3], slot[4], slot[5], slot[6] }))
  end
  local slots, order, others, total = {}, {}, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
  local fields = redis.call('HGETALL', key)
  for place = 1, #fields, 2 do
    local name, value = fields[place], fields[place + 1]
    local kind = string.sub(name, 1, 2)
    if kind == 's ' then
      local from, known = tonumber(string.match(name, '^s (%d+) ')), read(value, 5)
      if not from or not known or known[1] <= now then redis.call('HDEL', key, name)
      else
        if not slots[from] then
          slots[from] = { from, known[1], 0, 0, 0, 0 }
          order[#order + 1] = from
        end
        local slot = slots[from]
        slot[2] = math.max(slot[2], known[1])
        for part = 1, 4 do slot[part + 2] = math.min(slot[part + 2] + known[part + 1], 9007199254740991) end
        if from >= reset then add(total, known, 2) end
      end
    elseif kind == 'h ' and string.sub(name, 3) ~= call.holder then
      local known = read(value, 4)
      if known and living[string.sub(name, 3)] then add(others, known, 1) else redis.call('HDEL', key, name) end
    end
  end
  if isYoung then
    for part = 1, 4 do total[part] = math.max(total[part], account.known[part]) end
  end
  local state = { reset, others[1], others[2], others[3], others[4] }
  for _, from in ipairs(order) do
    for part = 1, 6 do state[#state + 1] = slots[from][part] end
  end
  states[i] = state
  held[i] = { own = account.held, others = others, ends = 0 }
  spent[i] = total
  for _, slot in pairs(slots) do held[i].ends = math.max(held[i].ends, slot[2]) end
end
local refusals = {}
for number, order in ipairs(call.orders) do
  local refusal = { 0, 0 }
  for _, refusing in ipairs(order.refusing) do
    local at = refusing[1] + 1
    for place, limit in ipairs(refusing[2]) do
      local used = amount(spent[at], limit[1])
      local isOver = used >= limit[2]
      if limit[3] == 1 then
        local waiting = amount(held[at].own, limit[1]) + amount(held[at].others, limit[1])
        isOver = used + waiting + amount(order.bound, limit[1]) > limit[2]
      end
      if isOver then
        refusal = { at, place }
        break
      end
    end
    if refusal[1] > 0 then break end
  end
  refusals[number] = refusal
  if refusal[1] == 0 then
    for _, place in ipairs(order.accounts) do add(held[place + 1].own, order.bound, 1) end
  end
end
for i, account in ipairs(call.accounts) do
  local key, own = KEYS[i + 1], held[i].own
  if own[1] + own[2] + own[3] + own[4] > 0 then redis.call('HSET', key, 'h ' .. call.holder, text(own))
  else redis.call('HDEL', key, 'h ' .. call.holder) end
  local ends = math.max(held[i].ends, account.till, now + call.lease)
  redis.call('PEXPIREAT', key, string.format('%.0f', ends))
  if account.list then
    redis.call('ZADD', account.list, string.format('%.0f', ends), account.subject)
    redis.call('ZREMRANGEBYSCORE', account.list, '-inf', string.format('%.0f', now))
    redis.call('PEXPIREAT', account.list, string.format('%.0f', ends))
  end
end
redis.call('HSET', KEYS[1], call.holder, text({ now + call.lease, call.number }))
redis.call('HSET', KEYS[1], 'since', text({ since }))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', 10 * call.lease))
return { ARGV[2], 1, now, since, states, refusals }
`;

const runScript = redisScript(SCRIPT);

/** `holders`: the key of the hash of all holders. */
export async function runShared(client: RedisClient, holders: string, call: BudgetCall): Promise<SharedReply> {
  const turn = `${call.holder}:${call.number}`;
  const keys = [holders, ...call.accounts.map(({ key }) => key)];
  const reply = await runScript(client, keys, [JSON.stringify(written(call)), turn]);
  return readReply(reply, call, turn);
}

/** So far a gateway's time may be from that of the server: what counts is decided by the server's alone. */
const CLOCK_SLACK_MS = 2_000;
/** Every gateway that lives is there again in this time: the longest pause between two attempts, and some more. */
const YOUNG_MS = 20_000;
/** Subjects that are read. */
const MAX_SUBJECTS = 1_000;

/** The subjects of a rule that have spent something which counts. */
export async function readSubjects(client: RedisClient, list: string, nowMs: number): Promise<string[]> {
  const subjects = await client.send("ZRANGEBYSCORE", [
    list,
    String(nowMs),
    "+inf",
    "LIMIT",
    "0",
    String(MAX_SUBJECTS),
  ]);
  if (!Array.isArray(subjects) || !subjects.every((subject) => typeof subject === "string")) throw new BadAnswer();
  return subjects;
}

function written({ holder, number, folder, leaseMs, sinceMs, accounts, orders }: BudgetCall) {
  return {
    ...{ holder, number, folder, lease: leaseMs },
    ...{ since: sinceMs, slack: CLOCK_SLACK_MS, young: YOUNG_MS },
    accounts: accounts.map(({ fromMs, untilMs, resetAtMs, resetMode, spent, known, held, listed }) => ({
      ...{ from: fromMs, till: untilMs, reset: resetAtMs, mode: resetMode, held: listOf(held), known: listOf(known) },
      ...(listed && { list: listed.key, subject: listed.subject }),
      spent: spent.map((slot) => [slot.fromMs, slot.endsMs, ...listOf(slot)]),
    })),
    orders: orders.map(({ bound, accounts: places, refusing }) => ({
      ...{ bound: listOf(bound), accounts: places },
      refusing: refusing.map(({ account, limits }) => [
        account,
        limits.map(({ name, most, isExact }) => [AMOUNT_NAMES.indexOf(name) + 1, most, isExact ? 1 : 0]),
      ]),
    })),
  };
}

const listOf = ({ cost, input, output, requests }: Readonly<Amounts>) => [cost, input, output, requests];

/** Fields of a slot in an answer, and those before the first slot. */
const SLOT_FIELDS = 6;
const STATE_FIELDS = 5;

function readReply(reply: unknown, call: BudgetCall, turn: string): SharedReply {
  if (!Array.isArray(reply) || reply[0] !== turn) throw new BadAnswer();
  const [, flag, now, since, states, refusals] = reply as unknown[];
  const [nowMs, sinceMs] = counts([now, since]) as [number, number];
  const rows = listIn(states, call.accounts.length);
  if (flag === 0) return { isDone: false, nowMs, sinceMs, resets: counts(rows) };
  if (flag !== 1) throw new BadAnswer();
  return {
    isDone: true,
    ...{ nowMs, sinceMs, isYoung: nowMs - sinceMs < YOUNG_MS },
    accounts: rows.map(readState),
    refusals: listIn(refusals, call.orders.length).map((pair) => {
      const [account = 0, limit = 0] = counts(pair);
      if (account > call.accounts.length) throw new BadAnswer();
      return account === 0 ? undefined : { account: account - 1, limit: limit - 1 };
    }),
  };
}

function readState(row: unknown): SharedState {
  const numbers = counts(row);
  if (numbers.length < STATE_FIELDS || (numbers.length - STATE_FIELDS) % SLOT_FIELDS !== 0) throw new BadAnswer();
  const spent: SpentSlot[] = [];
  for (let at = STATE_FIELDS; at < numbers.length; at += SLOT_FIELDS) {
    const [fromMs = 0, endsMs = 0] = numbers.slice(at);
    spent.push({ fromMs, endsMs, ...amountsAt(numbers, at + 2) });
  }
  return { resetAtMs: numbers[0] as number, heldByOthers: amountsAt(numbers, 1), spent };
}

function amountsAt(numbers: readonly number[], at: number): Amounts {
  const [cost = 0, input = 0, output = 0, requests = 0] = numbers.slice(at, at + 4);
  return { cost, input, output, requests };
}

function listIn(value: unknown, length: number): unknown[] {
  if (!Array.isArray(value) || value.length !== length) throw new BadAnswer();
  return value;
}

function counts(value: unknown): number[] {
  if (!Array.isArray(value) || !value.every((one) => Number.isSafeInteger(one) && one >= 0)) throw new BadAnswer();
  return value;
}
