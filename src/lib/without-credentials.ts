// An address as it can be logged and shown.

/** Credentials in it (http://user:pass@host) are cut. */
export function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^/@]*@/, "//");
}
