// Names that are given twice, and names of backends that do not exist. They are read from the document and not from the
// settings, so that they are found beside other mistakes in the same section.

import { nearest } from "../../lib/nearest.ts";
import { nameOf } from "../change/entries.ts";
import { hasReference } from "../values/expand.ts";
import type { Problem } from "../values/problems.ts";
import { isMapping, type Mapping, type Path, valueAt } from "../values/values.ts";

/** The document is that of the schema, with canonical keys and expanded strings, and may be wrong in any way. */
export function nameProblems(document: Mapping): Problem[] {
  return [
    ...repeatedAddresses(document),
    ...repeatedNames(document, ["backends"], "name"),
    ...listAt(document, ["backends"]).flatMap((_, index) =>
      repeatedNames(document, ["backends", index, "model_configs"], "id"),
    ),
    ...repeatedNames(document, ["api_keys", "jwt"], "issuer"),
    ...repeatedNames(document, ["budgets", "rules"], "id"),
    ...repeatedNames(document, ["organizations"], "id"),
    ...repeatedNames(document, [...AUTH, "tokens"], "name"),
    ...repeatedNames(document, [...AUTH, "users"], "username"),
    ...repeatedAdminTokens(document),
    ...repeatedAdminUser(document),
    ...repeatedNames(document, ["notifications"], "name"),
    ...repeatedSecrets(document),
    ...repeatedKeyIds(document),
    ...takenBudgetNames(document, KEYS),
    ...takenBudgetNames(document, ["organizations"]),
    ...unknownBackends(document),
  ];
}

function repeatedAddresses(document: Mapping): Problem[] {
  const addresses = listAt(document, ["server", "bind_address"]).map((address) =>
    // Port 0 takes another free port each time.
    typeof address === "string" && !address.endsWith(":0") ? address : undefined,
  );
  return repeated(addresses).map(([index, first]) => ({
    path: ["server", "bind_address", index],
    message: `is the same address as server.bind_address[${first}]`,
  }));
}

function repeatedNames(document: Mapping, path: Path, key: "name" | "id" | "issuer" | "username"): Problem[] {
  const names = listAt(document, path).map((entry) => nameOf(entry, key));
  return repeated(names).map(([index, first]) => ({
    path: [...path, index, key],
    message: `"${names[index]}" is already the ${key} of ${path.at(-1)}[${first}]`,
  }));
}

const AUTH = ["admin", "auth"];

/** The role of a token must not depend on which of two entries is found. */
function repeatedAdminTokens(document: Mapping): Problem[] {
  const auth = valueAt(document, AUTH);
  const tokens = listAt(document, [...AUTH, "tokens"]).map((entry) => nameOf(entry, "token"));
  const placeOfToken = (place: number) => (place === 0 ? "admin.auth.token" : `admin.auth.tokens[${place - 1}].token`);
  return repeated([nameOf(auth, "token"), ...tokens]).map(([place, first]) => ({
    path: [...AUTH, "tokens", place - 1, "token"],
    message: `is the same token as ${placeOfToken(first)}`,
  }));
}

function repeatedAdminUser(document: Mapping): Problem[] {
  const own = nameOf(valueAt(document, AUTH), "username");
  const users = listAt(document, [...AUTH, "users"]).map((entry) => nameOf(entry, "username"));
  const index = own === undefined ? -1 : users.indexOf(own);
  if (index === -1) return [];
  return [{ path: [...AUTH, "users", index, "username"], message: `"${own}" is already admin.auth.username` }];
}

const KEYS = ["api_keys", "keys"];

function repeatedSecrets(document: Mapping): Problem[] {
  const keys = listAt(document, KEYS);
  // The secret before a rotation is one too: its place is behind that of the key itself.
  const secrets = keys.flatMap((entry) => [nameOf(entry, "key"), nameOf(valueAt(entry, ["previous"]), "key")]);
  return repeated(secrets).map(([place, first]) => ({
    path: [...KEYS, Math.floor(place / 2), ...(place % 2 === 0 ? ["key"] : ["previous", "key"])],
    message: `is the same key as ${placeOf(Math.floor(first / 2), keys)}`,
  }));
}

function repeatedKeyIds(document: Mapping): Problem[] {
  const keys = listAt(document, KEYS);
  return repeated(keys.map((entry) => nameOf(entry, "id"))).map(([index, first]) => ({
    path: [...KEYS, index, "id"],
    message: `is the same id as that of ${placeOf(first, keys)}`,
  }));
}

/** A budget is named by its carrier, and by that name with :tokens where it comes from a token_limit. */
function takenBudgetNames(document: Mapping, path: Path): Problem[] {
  return listAt(document, path).flatMap((entry, index) => {
    const isTaken = nameOf(entry, "id")?.endsWith(":tokens") && (valueAt(entry, ["budget"]) ?? null) !== null;
    if (!isTaken) return [];
    const message = 'must not end in ":tokens" beside a budget: a token_limit has its name';
    return [{ path: [...path, index, "id"], message }];
  });
}

/** By position: an id could be anything, a secret pasted into the wrong line too. */
function placeOf(index: number, keys: readonly unknown[]): string {
  return `the ${ordinal(index + 1)} of the ${keys.length} keys`;
}

function ordinal(position: number): string {
  const suffix = /1[123]$/.test(String(position)) ? "th" : (["th", "st", "nd", "rd"][position % 10] ?? "th");
  return `${position}${suffix}`;
}

/** Settings for a mistyped backend would be ignored in silence. */
function unknownBackends(document: Mapping): Problem[] {
  const backends = document.backends ?? [];
  if (!Array.isArray(backends)) return [];
  const names = backends.flatMap((entry) => nameOf(entry, "name") ?? []);
  // A name that is missing, or that a variable should give, could be any of those that are looked for.
  if (names.length < backends.length || names.some(hasReference)) return [];
  const places: { path: Path; name: string | undefined }[] = [];
  for (const section of ["circuit_breaker", "global_prompts"]) {
    const overrides = valueAt(document, [section, "backends"]);
    for (const name of isMapping(overrides) ? Object.keys(overrides) : []) {
      places.push({ path: [section, "backends", name], name });
    }
  }
  const sources = ["kv_cache_index", "event_sources"];
  listAt(document, sources).forEach((entry, index) => {
    places.push({ path: [...sources, index, "backend_name"], name: nameOf(entry, "backend_name") });
  });
  return places.flatMap(({ path, name }) => {
    if (name === undefined || names.includes(name)) return [];
    const near = nearest(name, names);
    const hint = near === undefined ? "" : `; did you mean "${near}"?`;
    return [{ path, message: `there is no backend of this name${hint}` }];
  });
}

function listAt(document: Mapping, path: Path): readonly unknown[] {
  const value = valueAt(document, path);
  return Array.isArray(value) ? value : [];
}

/** Positions of values that stood before, each with the first position. */
function repeated(values: readonly (string | undefined)[]): [index: number, first: number][] {
  const seen = new Map<string, number>();
  const found: [number, number][] = [];
  values.forEach((value, index) => {
    if (value === undefined) return;
    const first = seen.get(value);
    if (first === undefined) seen.set(value, index);
    else found.push([index, first]);
  });
  return found;
}
