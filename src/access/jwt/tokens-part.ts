// Tokens of the issuers that the configuration names. Their keys stay while their issuers do.

import { remade } from "../../config/compile/part.ts";
import type { ConfigSnapshot } from "../../config/compile/snapshot.ts";
import type { Settings } from "../../config/sections/registry.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../logging/logger.ts";
import type { TokenVerifier } from "../api-keys.ts";

interface TokensParts {
  clock: Clock;
  log: Logger;
}

type Followed = Pick<ConfigSnapshot, "settings" | "attachments">;

export function createTokensPart(snapshot: Followed, parts: TokensParts) {
  const made = remade<
    { issuers: Settings["api_keys"]["jwt"]; keySets: ReadonlyMap<string, string> },
    (TokenVerifier & { stop(): void }) | undefined
  >({
    make({ issuers, keySets }) {
      if (issuers.length === 0) return undefined;
      // Few gateways have issuers of tokens, and the library takes memory.
      const { createTokenVerifier } = require("./verify-tokens.ts") as typeof import("./verify-tokens.ts");
      return createTokenVerifier(issuers, keySets, parts);
    },
    end: (verifier) => verifier?.stop(),
  });

  function follow({ settings, attachments }: Followed): void {
    made.of({ issuers: settings.api_keys.jwt, keySets: attachments.keySets });
  }
  follow(snapshot);
  return {
    follow,
    get verifier(): TokenVerifier | undefined {
      return made.now;
    },
    stop: made.stop,
  };
}
