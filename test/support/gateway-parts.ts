// What a test starts a gateway with, and the folder and the environment that are made of it.

import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";

export interface GatewayParts {
  /** Written as JSON, which is YAML too. */
  config?: ConfigDocument;
  /** Written as it is. */
  configText?: string;
  configName?: string;
  environment?: Record<string, string>;
  /** Further files for the working folder. */
  files?: Record<string, string>;
  /** Whether to wait until the health checks of all backends have had a result; default true. */
  awaitHealth?: boolean;
}

/** With what only a process can be started with. */
type AnyParts = Omit<GatewayParts, "config"> & { config?: ConfigDocument | null };

/** Port 0 through the configuration where the test gives an object, else through the environment. */
export function withFreePort<Parts extends AnyParts>(parts: Parts): Parts {
  if (parts.configText !== undefined || parts.config === null) {
    return { ...parts, environment: { SIGNALBOX_SERVER__BIND_ADDRESS: "127.0.0.1:0", ...parts.environment } };
  }
  return {
    ...parts,
    config: {
      // Many tests make one backend fail again and again; those about the circuit breaker switch it on.
      circuit_breaker: { enabled: false },
      ...parts.config,
      server: { bind_address: "127.0.0.1:0", ...upstreamClient(), ...workers(), ...parts.config?.server },
    },
  };
}

/** UPSTREAM_CLIENT=fetch runs any test with the other client for backends. */
function upstreamClient(): { upstream_client?: "fetch" } {
  return process.env.UPSTREAM_CLIENT === "fetch" ? { upstream_client: "fetch" } : {};
}

/** GATEWAY_WORKERS=2 runs any test in front of so many processes. */
function workers(): { workers?: number } {
  return process.env.GATEWAY_WORKERS === undefined ? {} : { workers: workerCount() };
}

export function workerCount(): number {
  return Number(process.env.GATEWAY_WORKERS ?? 1);
}

/** A folder of its own, with its configuration file and what else belongs there. */
export function makeFolder(parts: AnyParts): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "signalbox-test-")));
  mkdirSync(join(folder, "home"));
  const configPath = configPathOf(folder, parts);
  const files = Object.entries(parts.files ?? {}).map(([path, text]) => [join(folder, path), text] as const);
  if (configPath !== undefined) files.push([configPath, configTextOf(parts) as string]);
  for (const [target, content] of files) {
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
  }
  return folder;
}

/** For processes of tests: what npm test sets for the engine of the runtime holds for them as well. */
export function engineOptions(): Record<string, string> {
  const entries = Object.entries(process.env) as [string, string][];
  return Object.fromEntries(entries.filter(([name]) => name.startsWith("BUN_JSC_")));
}

/** What else runs on this machine is no part of a test. */
export function environmentOf(folder: string, { environment }: AnyParts): Record<string, string> {
  return {
    ...engineOptions(),
    PATH: process.env.PATH ?? "",
    HOME: join(folder, "home"),
    SIGNALBOX_DISCOVERY_PORTS: "none",
    XDG_CONFIG_HOME: join(folder, "home", ".config"),
    ...environment,
  };
}

const CONFIG_NAME = "gateway.yaml";

export function configTextOf({ configText, config }: AnyParts): string | undefined {
  return configText ?? (config ? JSON.stringify(config, undefined, 2) : undefined);
}

export function configPathOf(folder: string, parts: AnyParts): string | undefined {
  return configTextOf(parts) === undefined ? undefined : join(folder, parts.configName ?? CONFIG_NAME);
}
