// Reads what other gateways put into this one's inbox, for as long as the common queue is in use.

import type { Redis } from "../redis/redis.ts";
import { INBOX_BEGIN, receive } from "./shared-lease.ts";

interface InboxReaderParts {
  id: string;
  prefix(): string;
  /** With connections of its own, because reads wait at the server. */
  redis(): Redis | undefined;
  /** The time that a read waits there. */
  blockMs: number;
  received(text: string): void;
  /** What is sent to this gateway comes, or no longer does. */
  hearingChanged(): void;
}

/** Between looks at a server that is away. */
const PAUSE_MS = 100;

export function createInboxReader({ id, prefix, redis, blockMs, received, hearingChanged }: InboxReaderParts) {
  let isHearing: boolean | undefined;
  let round = 0;

  function hear(isHeard: boolean): void {
    if (isHearing === isHeard) return;
    isHearing = isHeard;
    hearingChanged();
  }

  async function read(own: number): Promise<void> {
    let last = INBOX_BEGIN;
    for (let tries = 0; own === round; ) {
      const client = redis();
      // The first one answers at once, so that the gateway knows whether it can join.
      const waitMs = isHearing ? blockMs : undefined;
      const asked = client?.isThere ? client.ask((link) => receive(link, prefix(), id, last, waitMs)) : undefined;
      const entries = await asked;
      if (own !== round) return;
      if (entries !== undefined) {
        tries = 0;
        hear(true);
        for (const { id: place, text } of entries) {
          last = place;
          received(text);
        }
        continue;
      }
      // A connection that was closed is opened again by the next read; a server may have lost its data, and its clock may be another.
      last = INBOX_BEGIN;
      if (client?.isThere && ++tries <= 1) continue;
      hear(false);
      await Bun.sleep(PAUSE_MS);
    }
  }

  return {
    get isHearing(): boolean {
      return isHearing === true;
    },
    start(): void {
      void read(++round);
    },
    stop(): void {
      round++;
      isHearing = undefined;
    },
  };
}
