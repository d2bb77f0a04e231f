// The credentials of all backends that need more than a fixed key, as the configuration in force names them.

import type { BackendSettings } from "../../config/sections/registry.ts";
import type { Backend } from "../backend.ts";
import type { BackendKind } from "../kind.ts";
import { BACKEND_KINDS } from "../kinds.ts";
import { type BackendCredential, CredentialError, type CredentialTools } from "./credential.ts";

export type CredentialSet = ReturnType<typeof createCredentialSet>;

type SetTools = Omit<CredentialTools, "backend">;

interface MadeCredential {
  options: unknown;
  credential: BackendCredential;
}

/** A backend that was removed or disabled takes no new requests; one that was on its way there ends as a failure. */
const GONE: BackendCredential = {
  authorize: () => Promise.reject(new CredentialError("the backend is not in use any more")),
  stop() {},
};

export function createCredentialSet(
  tools: SetTools,
  kindOf: (settings: BackendSettings) => BackendKind = ({ type }) => BACKEND_KINDS[type],
) {
  let made = new Map<string, MadeCredential>();

  function remake(settings: BackendSettings, before: MadeCredential | undefined): MadeCredential | undefined {
    const { credential: scheme } = kindOf(settings);
    const options = settings.enabled ? scheme?.optionsOf(settings) : undefined;
    if (scheme === undefined || options === undefined) return undefined;
    if (before !== undefined && Bun.deepEquals(before.options, options, true)) return before;
    return { options, credential: scheme.make(options, { ...tools, backend: settings.name }) };
  }

  return {
    follow(backends: readonly BackendSettings[]): void {
      const next = new Map<string, MadeCredential>();
      for (const settings of backends) {
        const one = remake(settings, made.get(settings.name));
        if (one !== undefined) next.set(settings.name, one);
      }
      for (const [name, one] of made) if (next.get(name) !== one) one.credential.stop();
      made = next;
    },
    /** For a backend that has one. */
    of: ({ name }: Pick<Backend, "name">): BackendCredential => made.get(name)?.credential ?? GONE,
    stop(): void {
      for (const { credential } of made.values()) credential.stop();
      made = new Map();
    },
  };
}
