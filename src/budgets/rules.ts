// The rules of a configuration: those of the section budgets, and those that keys carry.

import { acceptedSecrets } from "../access/api-keys.ts";
import type { KeyIdentity } from "../access/key-identity.ts";
import type { KeyRights } from "../access/key-rights.ts";
import { NO_STORED_KEYS, type StoredKey, type StoredKeys } from "../access/stored-keys.ts";
import { type BudgetRule, type BudgetWindow, type OwnBudget, tokensPerMinute } from "../config/sections/budgets.ts";
import type { Organization } from "../config/sections/organizations.ts";
import type { Settings } from "../config/sections/registry.ts";
import { formatDuration } from "../lib/duration.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { compileGlob, isGlob } from "../lib/glob.ts";
import { spellingsOfModel } from "../names.ts";
import { AMOUNT_NAMES, type AmountName, writtenAmount } from "./amounts.ts";
import { type SpanAt, spansOf } from "./windows.ts";

/** Who spends: a Caller (access/caller.ts), or a client without a key. */
export interface Payer {
  keyId: string | undefined;
  userId: string | undefined;
  organizationId: string | undefined;
}

/** Who spends, and on what. */
export interface Spender extends Payer {
  model: string;
  backend: string;
  /** It is spent already: no limit refuses it. */
  isOwed?: true;
}

interface Limit {
  name: AmountName;
  /** In the units of Amounts. */
  most: number;
}

export interface Rule {
  /**
   * Of the section as it is written; of a key "key:ID", and "key:ID:tokens" for its tokens per minute; of an organization
   * "organization:ID" and "organization:ID:tokens".
   */
  id: string;
  /** The key that carries it; undefined: it stands in the section. */
  ofKey: string | undefined;
  match: BudgetRule["match"];
  limits: readonly Limit[];
  window: BudgetWindow;
  spans: SpanAt;
  /** The same for another resetAtMs. */
  spansSince(resetAtMs: number): SpanAt;
  resetAtMs: number;
  /** The same for one subject, which may have been reset later. */
  resetOf(subject: string): number;
  /** Those later times. */
  subjectResets: ReadonlyMap<string, number>;
  per: BudgetRule["per"];
  isStrict: boolean;
  /** Shares of the limit, from the least to the whole. */
  thresholds: readonly number[];
  whenExceeded: BudgetRule["when_exceeded"];
  /** The window is so short that waiting is the answer: a refusal is one of a rate limit. */
  isRate: boolean;
  /** True where another backend of the model may not be concerned. */
  namesBackend: boolean;
  matches(spender: Spender): boolean;
  /** The same for some model on some backend. */
  concerns(caller: Payer): boolean;
}

interface RuleSettings extends Pick<Settings, "budgets" | "organizations"> {
  keys: Settings["api_keys"]["keys"];
}

export type Rules = ReturnType<typeof createRules>;

/** @param stored - keys whose rules are made when they are first asked for */
export function createRules(
  { budgets, keys, organizations }: RuleSettings,
  identify: KeyIdentity,
  stored: Pick<StoredKeys, "find" | "version"> = NO_STORED_KEYS,
) {
  const { time_zone: timeZone } = budgets;
  const keysWithLimit = new Set(keys.filter((key) => key.token_limit !== undefined).map(identify));
  const written = new Set(keys.map(identify));
  /** Keys of the configuration do not wait for a key store that cannot be read. */
  function findStored(keyId: string): StoredKey | undefined {
    try {
      return stored.find(keyId);
    } catch (error) {
      if (written.has(keyId)) return undefined;
      throw error;
    }
  }
  const hasOwnTokens = (keyId: string) =>
    keysWithLimit.has(keyId) || findStored(keyId)?.rights.token_limit !== undefined;
  const common = [
    ...budgets.rules.map((rule) => compileRule(rule, timeZone)),
    ...organizations.flatMap((organization) => rulesOfOrganization(organization, timeZone, hasOwnTokens)),
  ];
  const ofKeys = new Map<string, Rule[]>();
  for (const key of keys) {
    for (const { caller } of acceptedSecrets(key, identify)) {
      const own = rulesOfKey(caller.keyId, key, timeZone);
      if (own.length > 0) ofKeys.set(caller.keyId, own);
    }
  }
  /** The same rules as long as the key stays as it is. */
  const ofStored = new WeakMap<StoredKey, Rule[]>();
  function ownOf({ keyId }: Payer): readonly Rule[] {
    if (keyId === undefined) return [];
    const own = ofKeys.get(keyId);
    if (own !== undefined) return own;
    const key = findStored(keyId);
    if (key === undefined) return [];
    return getOrMake(ofStored, key, () => {
      const own = rulesOfKey(keyId, key.rights, timeZone);
      countsCost ||= own.some(isOfCost);
      return own;
    });
  }
  const all = [...common, ...[...ofKeys.values()].flat()];
  let countsCost = all.some(isOfCost);
  const byId = new Map(all.map((rule) => [rule.id, rule]));
  return {
    /** Without those of stored keys, which may be any number. */
    all,
    /** Another number when rules of stored keys may have changed. */
    get version() {
      return stored.version;
    },
    /** Throws 503 for a rule of a stored key that cannot be read. */
    byId(id: string): Rule | undefined {
      const known = byId.get(id);
      if (known !== undefined || !id.startsWith(OF_KEY)) return known;
      const keyId = id.slice(OF_KEY.length);
      const candidates = [keyId, keyId.replace(/:tokens$/, "")];
      return candidates.flatMap((each) => ownOf({ ...NO_PAYER, keyId: each })).find((rule) => rule.id === id);
    },
    /** Of stored keys, those that were asked for. */
    get countsCost() {
      return countsCost;
    },
    hasStrict: all.some(({ isStrict }) => isStrict),
    /** Those that count what the spender spends. */
    matching: (spender: Spender): Rule[] => [...common.filter((rule) => rule.matches(spender)), ...ownOf(spender)],
    /** Those that may count what the caller spends. */
    concerning: (caller: Payer): Rule[] => [...common.filter((rule) => rule.concerns(caller)), ...ownOf(caller)],
  };
}

function isOfCost({ limits }: Rule): boolean {
  return limits.some(({ name }) => name === "cost");
}

const OF_KEY = "key:";
const NO_PAYER: Payer = { keyId: undefined, userId: undefined, organizationId: undefined };

/** The rules that a key carries. */
function rulesOfKey(keyId: string, { budget, token_limit: tokens }: KeyRights, timeZone: string): Rule[] {
  const id = `${OF_KEY}${keyId}`;
  const own: Rule[] = [];
  if (budget !== undefined) own.push(compileOwn(keyId, id, budget, timeZone));
  if (tokens !== undefined) own.push(compileOwn(keyId, `${id}:tokens`, tokensPerMinute(tokens), timeZone));
  return own;
}

/** What its members may spend together, and the tokens per minute of each of them that has no such limit of its own. */
function rulesOfOrganization(
  { id, budget, token_limit: tokens }: Organization,
  timeZone: string,
  hasOwnTokens: (keyId: string) => boolean,
): Rule[] {
  const rules: Rule[] = [];
  const match = { organization: [id] };
  // Names are taken to the letter, whatever stars they have.
  const isMember = ({ organizationId }: Payer) => organizationId === id;
  if (budget !== undefined) {
    const rule = compileRule({ ...budget, id: `organization:${id}`, limit: budget, match }, timeZone);
    rules.push({ ...rule, matches: isMember, concerns: isMember });
  }
  if (tokens !== undefined) {
    const limit = tokensPerMinute(tokens);
    const rule = compileRule({ ...limit, id: `organization:${id}:tokens`, limit, match, per: "key" }, timeZone);
    const isCounted = (payer: Payer) => isMember(payer) && !hasOwnTokens(payer.keyId ?? "");
    rules.push({ ...rule, matches: isCounted, concerns: isCounted });
  }
  return rules;
}

/** The rule of a key, which is found by its name. */
function compileOwn(keyId: string, id: string, budget: OwnBudget, timeZone: string): Rule {
  return compileRule({ ...budget, id, limit: budget, match: { key: [keyId] } }, timeZone, keyId);
}

function compileRule(rule: BudgetRule, timeZone: string, ofKey?: string): Rule {
  const { id, limit, match, window, per, strict, warn_at, when_exceeded, reset_at: resetAtMs = 0 } = rule;
  const resets = Object.entries(rule.reset_subjects ?? {}).filter(([, atMs]) => atMs > resetAtMs);
  const subjectResets = new Map(resets);
  const isNamed = {
    key: matcherOf(match.key),
    user: matcherOf(match.user),
    organization: matcherOf(match.organization),
    model: matcherOf(match.model?.flatMap(spellingsOfModel)),
    backend: matcherOf(match.backend),
  };
  const concerns = ({ keyId, userId, organizationId }: Payer) =>
    isNamed.key(keyId) && isNamed.user(userId) && isNamed.organization(organizationId);
  return {
    ...{ id, ofKey, match, window, per, resetAtMs },
    limits: AMOUNT_NAMES.flatMap((name) => {
      const most = limit[name];
      return most === undefined ? [] : [{ name, most: writtenAmount(name, most) }];
    }),
    spans: spansOf(window, timeZone, resetAtMs),
    subjectResets,
    resetOf: (subject) => subjectResets.get(subject) ?? resetAtMs,
    spansSince: (sinceMs) => spansOf(window, timeZone, sinceMs),
    isStrict: strict,
    thresholds: [...new Set([...warn_at, 1])].sort((a, b) => a - b),
    whenExceeded: when_exceeded,
    isRate: "unit" in window ? window.unit === "minute" : window.rollingMs <= 60_000,
    namesBackend: match.backend !== undefined,
    matches: (spender) => concerns(spender) && isNamed.model(spender.model) && isNamed.backend(spender.backend),
    concerns,
  };
}

/** A caller without a name is matched by `*` alone. */
function matcherOf(names: readonly string[] | undefined): (name: string | undefined) => boolean {
  if (names === undefined) return () => true;
  const exact = new Set(names.filter((name) => !isGlob(name)));
  const globs = names.filter(isGlob).map(compileGlob);
  return (name = "") => exact.has(name) || globs.some((matches) => matches(name));
}

/** What a rule with `per` keeps apart; those without a name have one budget together. */
export function subjectOf({ per }: Rule, { keyId, userId, organizationId, model }: Payer & { model?: string }): string {
  if (per === undefined) return "";
  const name = { key: keyId, user: userId, organization: organizationId, model }[per];
  return name ?? "(none)";
}

/** Rules that count the same spender, found once, until rules of stored keys change. */
export function rememberMatches<Value>(most: number, version: () => number, find: (spender: Spender) => Value) {
  const known = new Map<string, Value>();
  let found: number | undefined;
  return {
    of(spender: Spender): Value {
      const now = version();
      if (now !== found) known.clear();
      found = now;
      const { keyId = "", userId = "", organizationId = "", model, backend } = spender;
      const name = `${keyId}\0${userId}\0${organizationId}\0${model}\0${backend}`;
      if (known.size >= most && !known.has(name)) known.clear();
      return getOrMake(known, name, () => find(spender));
    },
    forget: () => known.clear(),
  };
}

/** As the configuration writes it. */
export function windowText(window: Rule["window"]): string {
  return "unit" in window ? window.unit : formatDuration(window.rollingMs);
}
