// The gateway behind an agent: composed when the editor has its first answer, and a guest in its data folder.

import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Clock } from "../lib/clock.ts";
import type { Gateway } from "../runtime/gateway.ts";
import type { AgentConfiguration } from "../runtime/open-configuration.ts";

interface AgentGateway {
  /** Returns the same gateway to every caller. */
  compose(): Promise<Gateway>;
  /** Rejects when it cannot be composed; else it stays open. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

interface AgentGatewayParts {
  configuration: AgentConfiguration;
  env: Record<string, string | undefined>;
  clock: Clock;
}

export function createAgentGateway({ configuration, env, clock }: AgentGatewayParts): AgentGateway {
  const { store, fileHash, log, discover, followSaved } = configuration;
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {}); // callers of compose() get it
  let composing: Promise<Gateway> | undefined;
  let unfollow: (() => void) | undefined;

  async function make(): Promise<Gateway> {
    // Nothing of it is loaded before: an editor waits for the first answer of its agent.
    const [{ createGateway }] = await Promise.all([import("../runtime/gateway.ts"), discover()]);
    const gateway = createGateway({ store, fileHash, env, clock, log, view: asGuest });
    await gateway.start();
    unfollow = followSaved();
    log.info({ backends: store.current.settings.backends.map(({ name }) => name) }, "the agent has its backends");
    return gateway;
  }

  return {
    compose() {
      if (composing === undefined) {
        composing = make();
        composing.catch(failure.reject);
      }
      return composing;
    },
    failed: failure.promise,
    async stop() {
      const gateway = await composing?.catch(() => undefined);
      unfollow?.();
      await gateway?.stop();
    },
  };
}

/** Statistics, requests, metrics, notifications, recordings, batches, uploaded files and their locks belong to the gateway of the folder. */
function asGuest(snapshot: ConfigSnapshot): ConfigSnapshot {
  const { admin, metrics, files, recording, batches } = snapshot.settings;
  const { stats, requests } = admin;
  const settings = {
    ...snapshot.settings,
    admin: {
      ...admin,
      stats: { ...stats, persistence: { ...stats.persistence, enabled: false } },
      requests: { ...requests, enabled: false },
      audit: { ...admin.audit, enabled: false },
    },
    metrics: { ...metrics, enabled: false },
    files: { ...files, enabled: false },
    recording: { ...recording, enabled: false },
    batches: { ...batches, enabled: false },
    notifications: [],
  };
  return { ...snapshot, settings };
}
