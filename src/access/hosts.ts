// The header Host: whether it names a host at all, and whether that is this machine.

/** A name, an IPv4 address or an IPv6 address in brackets, with or without a port (RFC 9110, section 7.2). */
const HOST = /^(?:[a-z0-9_][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::(\d{0,5}))?$/i;

/** False also for a repeated header, whose values the runtime joins with commas. */
export function isHost(host: string): boolean {
  const parts = HOST.exec(host);
  return parts !== null && Number(parts[1] ?? 0) <= 65_535;
}

/** The host of "host:port" in its one spelling; brackets are left out. */
export function hostName(host: string): string {
  return host
    .replace(/:\d*$/, "")
    .replace(/^\[|\]$/g, "")
    .toLowerCase();
}

export function isLoopback(address: string): boolean {
  return /^(::ffff:)?127\.\d+\.\d+\.\d+$/i.test(address) || address === "::1";
}

/** A name that no name server can lead elsewhere, or lead here from elsewhere. An empty or missing Host is none. */
export function isLocalHost(host: string | null): boolean {
  if (host === null) return false;
  const name = hostName(host);
  return name === "localhost" || name.endsWith(".localhost") || isLoopback(name);
}

/** True if only programs on this machine can connect. */
export function isOnLoopback(bindAddresses: readonly string[]): boolean {
  return bindAddresses.every((address) => address.startsWith("unix:") || isLocalHost(address));
}

/** True if a page of this origin came from the host that it asks. */
export function isSameOrigin(origin: string, host: string | null): boolean {
  return host !== null && originHost(origin) === host.toLowerCase();
}

export function isLocalOrigin(origin: string): boolean {
  return isLocalHost(originHost(origin) ?? null);
}

function originHost(origin: string): string | undefined {
  return URL.parse(origin)?.host;
}
