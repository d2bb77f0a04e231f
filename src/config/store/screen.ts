// Keeps secrets that were revoked out of what would run: an earlier state comes back without them, an edit of other lines of
// the file brings none back, and a change through the API that gives one is refused.

import { type Credential, credentialsOf, type LeftOut, withoutCredentials } from "../change/credentials.ts";
import type { Environment } from "../values/expand.ts";
import type { Problem } from "../values/problems.ts";
import type { Mapping } from "../values/values.ts";
import { nameOf, type RevokedSecrets } from "./revoked-secrets.ts";

interface Screen {
  running: Mapping;
  revoked: RevokedSecrets;
  env: Environment;
  nowMs: number;
}

/** Rolled back, imported or staged. `version`: the one that it belongs to. */
export function withoutRevoked(document: Mapping, screen: Screen, version = Number.POSITIVE_INFINITY): LeftOut {
  const { running, revoked, env, nowMs } = screen;
  const runs = runningCredentials(screen);
  const isForgotten = revoked.isForgotten(version);
  return withoutCredentials(document, running, env, (credential) => {
    const own = runs.get(nameOf(credential));
    if (own === undefined) return isForgotten || revoked.has(credential);
    return wouldRevive(own, credential, nowMs);
  });
}

/** The file merged with what runs; `revoked` without the secrets that the edit names again. */
export function editWithoutRevoked(
  document: Mapping,
  { base, file }: { base: Mapping; file: Mapping },
  screen: Screen,
): LeftOut {
  const { running, revoked, env, nowMs } = screen;
  const runs = runningCredentials(screen);
  const before = new Set(credentialsOf(base, env).map(withEnd));
  const given = new Set(credentialsOf(file, env).map(withEnd));
  return withoutCredentials(document, running, env, (credential) => {
    const own = runs.get(nameOf(credential));
    if (own === undefined) return revoked.has(credential);
    // The file itself may say that a key is valid for longer.
    const end = withEnd(credential);
    const isRenewed = given.has(end) && !before.has(end);
    return !isRenewed && wouldRevive(own, credential, nowMs);
  });
}

export function leftOutOfRevoked(field: string): string {
  return `${field} is left out: the secret was revoked or has expired`;
}

/** A key that has expired may be given more time; a secret that was replaced may not be given again. */
export function revokedProblems(document: Mapping, sections: readonly string[], screen: Screen): Problem[] {
  const { revoked, env, nowMs } = screen;
  const runs = runningCredentials(screen);
  return credentialsOf(document, env)
    .filter((credential) => {
      if (!sections.includes(credential.section)) return false;
      const own = runs.get(nameOf(credential));
      if (own === undefined) return revoked.has(credential);
      return own.place !== credential.place && wouldRevive(own, credential, nowMs);
    })
    .map(({ path }) => ({ path, message: "was revoked and is never valid again; give another secret" }));
}

/** Those that the next document does not have any more; `onlyExpired`: without those that were still valid. */
export function revokedBy(
  { before, after, env }: { before: Mapping; after: Mapping; env: Environment },
  nowMs: number,
  onlyExpired: boolean,
): Credential[] {
  if (before === after) return [];
  const stay = new Set(credentialsOf(after, env).map(nameOf));
  return credentialsOf(before, env).filter(
    (credential) => !stay.has(nameOf(credential)) && (!onlyExpired || credential.expiresAtMs <= nowMs),
  );
}

function runningCredentials({ running, env }: Screen): Map<string, Credential> {
  return new Map(credentialsOf(running, env).map((credential) => [nameOf(credential), credential]));
}

function wouldRevive(running: Credential, next: Credential, nowMs: number): boolean {
  return running.expiresAtMs <= nowMs && next.expiresAtMs > nowMs;
}

function withEnd(credential: Credential): string {
  return `${nameOf(credential)}\0${credential.expiresAtMs}`;
}
