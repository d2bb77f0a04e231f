// Recordings in a worker: sealed here, kept by the primary.

import type { RecordingSink } from "../recording/recording.ts";
import type { Channel } from "./channel.ts";
import type { PrimaryDesk } from "./messages.ts";

const LIMIT_MS = 30_000;

export function createRemoteRecordings(channel: Channel<PrimaryDesk>): RecordingSink {
  return {
    async keep(recordings) {
      return (await channel.call("keepRecordings", [recordings], LIMIT_MS)) ?? 0;
    },
  };
}
