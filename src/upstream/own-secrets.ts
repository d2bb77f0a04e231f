// What a backend says when it refuses, without the secrets that it was sent: some quote the key that they do not like.

import type { Backend } from "../backends/backend.ts";
import type { CredentialHeaders } from "../backends/credentials/credential.ts";
import type { UpstreamFailure } from "./failure.ts";

const MASK = "********";
/** Shorter words are no secrets, and stand in too many places. */
const SHORTEST_SECRET = 8;

/** The same failure where it quotes nothing: bytes that can pass pass as they are. */
export function withoutSecrets(
  failure: UpstreamFailure,
  backend: Backend,
  credential: CredentialHeaders = {},
): UpstreamFailure {
  const secrets = secretsOf(backend, credential);
  if (secrets.length === 0) return failure;
  const clean = (text: string) => secrets.reduce((rest, secret) => rest.replaceAll(secret, MASK), text);
  if (failure.kind === "status") {
    const text = new TextDecoder().decode(failure.body);
    const cleaned = clean(text);
    const headers = Object.fromEntries(Object.entries(failure.headers).map(([name, value]) => [name, clean(value)]));
    return { ...failure, headers, body: cleaned === text ? failure.body : new TextEncoder().encode(cleaned) };
  }
  return "message" in failure ? { ...failure, message: clean(failure.message) } : failure;
}

/** As they are sent, and as they stand in JSON; of headers every word, because a scheme may stand before the secret. */
function secretsOf({ apiKey, settings }: Backend, credential: CredentialHeaders): string[] {
  const { username, password } = URL.parse(settings.url ?? "") ?? { username: "", password: "" };
  const headers = [...Object.values(settings.headers), ...Object.values(credential)];
  const words = [...headers, username, password, decoded(password)].flatMap((text) => text.split(/[\s=;,]+/));
  const secrets = [...(apiKey === undefined ? [] : [apiKey]), ...words].filter(
    ({ length }) => length >= SHORTEST_SECRET,
  );
  // The longest first: one may stand inside another.
  return [...new Set(secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]))].sort(
    (one, other) => other.length - one.length,
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a bare percent sign is part of the password
  }
}
