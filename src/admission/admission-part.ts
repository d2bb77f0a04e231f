// The queue that the configuration asks for. It keeps its slots and who waits, whatever the numbers become.

import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Settings } from "../config/sections/registry.ts";
import { createRedisServer, type RedisSurroundings } from "../redis/open-redis.ts";
import type { Redis, RedisClient } from "../redis/redis.ts";
import type { Admission, AdmissionView } from "./admission.ts";
import { AdmissionQueue } from "./queue.ts";
import type { SharedAdmission } from "./shared-admission.ts";
import { look } from "./shared-lease.ts";

interface AdmissionParts extends RedisSurroundings {
  /** The queue of another process, which has the slots; undefined: they are in this one. */
  elsewhere?: Admission | undefined;
  roomChanged?: ((backend: string, isFull: boolean) => void) | undefined;
}

type Place = Settings["rate_limiting"]["redis"];

/** Messages stay in their order. */
const CONNECTIONS = 1;
/** A read may wait at the server for so long. */
const BLOCK_MS = 500;
/** The other connection says the same. */
const QUIET = { info() {}, warn() {} };

export function createAdmissionPart(snapshot: ConfigSnapshot, parts: AdmissionParts) {
  const { clock, deadlines, log, elsewhere } = parts;
  // Another storage is used after a restart.
  const isShared = snapshot.settings.rate_limiting.storage === "redis" && elsewhere === undefined;
  let current = snapshot.settings;
  let queue: AdmissionQueue | undefined;
  let shared: SharedAdmission | undefined;
  let gateways = 1;
  let opened: { place: Place; redis: Redis } | undefined;
  let reading: { place: Place; redis: Redis } | undefined;
  const check = (client: RedisClient) => look(client, prefix(), "");
  const server = createRedisServer<Place>(parts, () => ({
    ...{ use: "admission", poolSize: CONNECTIONS, check },
    returned: () => shared?.returned(),
  }));
  const readingServer = createRedisServer<Place>({ ...parts, log: QUIET }, () => ({
    ...{ use: "admission", poolSize: CONNECTIONS, blockMs: BLOCK_MS, check },
  }));

  function prefix(): string {
    return current.rate_limiting.redis.key_prefix;
  }

  function roomChanged(backend: string, isFull: boolean): void {
    if (isShared) shared?.roomChanged(backend, isFull);
    else parts.roomChanged?.(backend, isFull);
  }

  function bound(): void {
    const { admission, backends } = current;
    const names = backends.map(({ name }) => name);
    queue?.follow({ ...admission, gateways: admission.gateways * gateways }, names);
  }

  function share(own: AdmissionQueue): SharedAdmission {
    const { createSharedAdmission } = require("./shared-admission.ts") as typeof import("./shared-admission.ts");
    return createSharedAdmission({
      ...{ queue: own, prefix, log, now: clock.now, roomChanged: parts.roomChanged },
      redis: () => opened?.redis,
      inbox: () => reading?.redis,
      blockMs: BLOCK_MS,
      share(count) {
        gateways = count;
        bound();
      },
    });
  }

  function follow({ settings }: Pick<ConfigSnapshot, "settings">): void {
    current = settings;
    const { admission, rate_limiting } = settings;
    if (elsewhere !== undefined) return;
    if (admission.enabled && queue === undefined) {
      queue = new AdmissionQueue({ settings: admission, now: clock.now, deadlines, roomChanged });
      if (isShared) shared = share(queue);
    }
    if (shared !== undefined) {
      opened = server.of(rate_limiting.redis);
      reading = readingServer.of(rate_limiting.redis);
      if (admission.enabled) shared.start();
      // What waits at another gateway comes back, and is let go here.
      else void shared.stop();
    }
    bound();
  }
  follow(snapshot);
  return {
    follow,
    /** Undefined: no request waits. */
    get inUse(): Admission | undefined {
      return current.admission.enabled ? (elsewhere ?? shared?.admission ?? queue) : undefined;
    },
    /** That of this process, which other processes ask for; undefined before it was switched on. */
    own: () => queue,
    /** Undefined where nothing was ever counted here. */
    view: (): AdmissionView | undefined => queue?.view(),
    server: {
      get isThere(): boolean | undefined {
        return server.isThere && readingServer.isThere;
      },
    },
    async stop(): Promise<void> {
      await shared?.stop();
      shared?.end();
      server.stop();
      readingServer.stop();
    },
  };
}
