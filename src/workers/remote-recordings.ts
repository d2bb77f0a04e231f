// Recordings in a worker: sealed here, kept by the primary.

import type { RecordingSink } from "../recording/recording.ts";
import type { Channel } from "./channel.ts";
import type { PrimaryDesk } from "./messages.ts";

const LIMIT_MS = 30_000;

export function createRemoteRecordings(channel: Channel<PrimaryDesk>): RecordingSink {
  return {
    async keep(recording) {
      const isKept = await channel.call("keepRecording", [recording], LIMIT_MS);
      if (isKept !== true) throw new Error("the primary has not kept it");
    },
  };
}
