// A part that says what it follows.

import { type Part, remade } from "../../../src/config/compile/part.ts";
import type { ConfigSnapshot } from "../../../src/config/compile/snapshot.ts";

export function createThrowAwayPart(
  snapshot: ConfigSnapshot,
  log: { info(fields: object, message: string): void },
): Part {
  const made = remade<number, { attempts: number }>({
    make(attempts, before) {
      log.info({ attempts, before: before?.attempts }, "throw-away: made");
      return { attempts };
    },
    end: ({ attempts }) => log.info({ attempts }, "throw-away: ended"),
  });
  const follow = ({ settings }: Pick<ConfigSnapshot, "settings">) => void made.of(settings.retry.max_attempts);
  follow(snapshot);
  return { follow, stop: made.stop };
}
