// Asks a running gateway for its health, for container health checks and scripts.

import { resolve } from "node:path";
import type { Settings } from "../config/sections/registry.ts";
import { withoutCredentials } from "../lib/without-credentials.ts";

const HEALTH_PATH = "/health";

/** `url` is an http or https URL, or `unix:/path/to.sock`, which is asked for /health. */
export async function runHealthCheck(url: string, timeoutMs = 5000) {
  const socket = url.startsWith("unix:") ? url.slice("unix:".length) : undefined;
  const options: BunFetchRequestInit = { redirect: "manual", signal: AbortSignal.timeout(timeoutMs) };
  if (socket !== undefined) options.unix = socket;
  try {
    const target = socket === undefined ? url : `http://localhost${HEALTH_PATH}`;
    const response = await fetch(target, options);
    await response.body?.cancel();
    const message = `${withoutCredentials(url)} answered ${response.status}`;
    return { healthy: response.status === 200, message };
  } catch (error) {
    return { healthy: false, message: `${withoutCredentials(url)} ${reasonOf(error, timeoutMs)}` };
  }
}

/**
 * The URL at which this configuration's gateway answers: its first address, where "every interface" becomes loopback.
 * Undefined when the port is chosen at start. Relative sockets are below the folder of the configuration.
 */
export function defaultHealthCheckUrl(server: Settings["server"], baseDir: string): string | undefined {
  const address = typeof server.bind_address === "string" ? server.bind_address : server.bind_address[0];
  if (address === undefined) return undefined;
  if (address.startsWith("unix:")) return `unix:${resolve(baseDir, address.slice("unix:".length))}`;
  const colon = address.lastIndexOf(":");
  const port = address.slice(colon + 1);
  if (Number(port) === 0) return undefined;
  return `http://${loopbackFor(address.slice(0, colon))}:${port}${HEALTH_PATH}`;
}

function loopbackFor(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return /^\[[0:]+\]$/.test(host) ? "[::1]" : host;
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === "TimeoutError") return `did not answer within ${timeoutMs} ms`;
  const code = (error as { code?: unknown }).code;
  return `could not be reached${typeof code === "string" ? ` (${code})` : ""}`;
}
