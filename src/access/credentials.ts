// Credentials as they are presented and compared: user and password of a request, and digests that tell nothing.

/** "user:password", as the scheme Basic carries it. A username has no colon: both are right exactly when the text is. */
export function basicCredential(headers: Headers): string | undefined {
  const encoded = /^basic\s+(\S+)\s*$/i.exec(headers.get("authorization") ?? "")?.[1];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}

/** For both sides of a comparison: neither their length nor where they differ can be measured. */
export function createDigest(): (text: string) => Buffer {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  return (text) => new Bun.CryptoHasher("sha256", secret).update(text).digest();
}
