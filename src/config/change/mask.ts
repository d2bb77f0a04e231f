// Secrets in views of the configuration: shown in a masked form, which means "unchanged" when it comes back.

import { isSecret, isUrl } from "../schema/section-patterns.ts";
import type { Problem } from "../values/problems.ts";
import { isMapping, type Mapping, type Path, textsOf, valueAt } from "../values/values.ts";
import { entryNameKey, nameOf } from "./entries.ts";

export const MASK = "********";

/** Names the variable that holds a secret, and is none. A default inside it could be one. */
const PLAIN_REFERENCE = /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/;

/** The user and the password of a URL. */
const USER_INFO = /^([A-Za-z][A-Za-z0-9+.-]*:\/\/)([^/?#]*)@/;

/** The document, or the value that stands at a path of it, with every secret masked. */
export function maskSecrets(value: unknown, path: Path = []): unknown {
  if (isSecret(path)) return maskSecret(value);
  if (typeof value === "string" && isUrl(path)) return value.replace(USER_INFO, `$1${MASK}@`);
  if (Array.isArray(value)) return value.map((entry, index) => maskSecrets(entry, [...path, index]));
  if (!isMapping(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, maskSecrets(entry, [...path, key])]));
}

function maskSecret(value: unknown): unknown {
  if (value === null || value === undefined) return value;
  return typeof value === "string" && PLAIN_REFERENCE.test(value) ? value : MASK;
}

/**
 * The next document, with masked secrets replaced by those of the previous one. Entries of lists belong together by their
 * name; entries without one, when that is certain.
 */
export function unmask(next: Mapping, previous: Mapping) {
  const problems: Problem[] = [];
  /** Where a secret was put back in place of its masked form. */
  const kept: Path[] = [];

  function restore(value: unknown, old: unknown, path: Path): unknown {
    if (value === MASK && isSecret(path)) {
      if (typeof old === "string" && old !== MASK) {
        kept.push(path);
        return old;
      }
      problems.push({ path, message: NOTHING_TO_KEEP });
      return value;
    }
    if (typeof value === "string" && isUrl(path)) return restoreUrl(value, old, path);
    if (Array.isArray(value)) {
      const olds = pairEntries(value, Array.isArray(old) ? old : [], path);
      return value.map((entry, index) => restore(entry, olds[index], [...path, index]));
    }
    if (!isMapping(value)) return value;
    const oldAt = (key: string) => (isMapping(old) ? valueAt(old, [key]) : undefined);
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [key, restore(entry, oldAt(key), [...path, key])]),
    );
  }

  function restoreUrl(url: string, old: unknown, path: Path): string {
    if (USER_INFO.exec(url)?.[2] !== MASK) return url;
    const userInfo = typeof old === "string" ? USER_INFO.exec(old)?.[2] : undefined;
    if (userInfo === undefined || userInfo === MASK) {
      problems.push({ path, message: NOTHING_TO_KEEP });
      return url;
    }
    kept.push(path);
    return url.replace(USER_INFO, (_match, scheme: string) => `${scheme}${userInfo}@`);
  }

  return { document: restore(next, previous, []) as Mapping, problems, kept };
}

const NOTHING_TO_KEEP =
  "is the masked form of a secret, and it is not certain which one is meant; give the secret itself";

/** For every entry the one of the old list that it takes the place of, as far as that is certain. */
function pairEntries(entries: readonly unknown[], olds: readonly unknown[], path: Path): unknown[] {
  if (entries.length > 0 && isSecret([...path, 0])) return pairSecrets(entries, olds);
  const nameKey = entryNameKey(path);
  if (nameKey === undefined) return entries.map((_entry, index) => olds[index]);

  const pairs: unknown[] = entries.map((entry) => {
    const name = nameOf(entry, nameKey);
    return name === undefined ? undefined : olds.find((old) => nameOf(old, nameKey) === name);
  });
  const isOpen = (index: number) => pairs[index] === undefined && nameOf(entries[index], nameKey) === undefined;
  const remaining = new Set(olds.filter((old) => nameOf(old, nameKey) === undefined));
  const looksLike = (old: unknown, index: number) =>
    Bun.deepEquals(maskSecrets(old, [...path, index]), maskSecrets(entries[index], [...path, index]), true);
  const pair = (index: number, old: unknown) => {
    pairs[index] = old;
    remaining.delete(old);
  };
  // Entries that were not touched: first those that stand where they stood.
  for (const index of entries.keys()) {
    if (isOpen(index) && remaining.has(olds[index]) && looksLike(olds[index], index)) pair(index, olds[index]);
  }
  for (const index of entries.keys()) {
    if (!isOpen(index)) continue;
    const alike = [...remaining].filter((old) => looksLike(old, index));
    if (alike.length === 1) pair(index, alike[0]);
  }
  const open = [...entries.keys()].filter(isOpen);
  if (open.length === 1 && remaining.size === 1) pair(open[0] as number, [...remaining][0]);
  return pairs;
}

/** Masked secrets of a list look alike: only when all that are not written out are there, each is certain. */
function pairSecrets(entries: readonly unknown[], olds: readonly unknown[]): unknown[] {
  const kept = olds.filter((old) => !entries.includes(old));
  if (entries.filter((entry) => entry === MASK).length !== kept.length) return entries.map(() => undefined);
  let position = 0;
  return entries.map((entry) => (entry === MASK ? kept[position++] : entry));
}

/** A configuration that was exported with masked secrets cannot run: they are no secrets. */
export function maskedSecretProblems(document: Mapping): Problem[] {
  const message = "is the masked form of a secret, not the secret itself";
  return textsOf(document)
    .filter(({ text, path }) => (isSecret(path) ? text === MASK : isUrl(path) && USER_INFO.exec(text)?.[2] === MASK))
    .map(({ path }) => ({ path, message }));
}
