// An address as it can be logged and shown.

/** Credentials in it (http://user:pass@host) are cut: up to the last @ before the path, as the URL standard reads them. */
export function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^/?#\\]*@/, "//");
}
