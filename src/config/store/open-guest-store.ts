// The configuration of a process that shares a data folder with a gateway: it starts as that one would, follows what is
// changed there, and keeps nothing.

import { lazily } from "../../lib/lazily.ts";
import { storageMessage } from "../../lib/storage-message.ts";
import { describeChangeError } from "../change/change.ts";
import { logEffectWarnings } from "../compile/without-effect.ts";
import { resolvePath } from "../values/paths.ts";
import { ConfigDatabase } from "./database.ts";
import { keySalt } from "./key-salt.ts";
import { beginning, compiledBeginning, type OpenStoreParts, type OpenStoreResult } from "./open-store.ts";
import { readSaved, type Saved, savedMark } from "./read-saved.ts";
import { ConfigStore } from "./store.ts";

interface GuestStore {
  ok: true;
  store: ConfigStore;
  resumed: boolean;
  /** Looks now and then whether a gateway has changed the configuration. Returns the function that ends it. */
  followSaved(intervalMs?: number): () => void;
}

const FOLLOW_INTERVAL_MS = 2_000;

export async function openGuestStore(
  options: OpenStoreParts,
): Promise<GuestStore | Extract<OpenStoreResult, { ok: false }>> {
  const { snapshot, home, log } = options;
  const folder = resolvePath(snapshot.settings.server.data_dir, snapshot.baseDir, home);
  let mark = "";
  let hasTold = false;

  function look(): Saved | undefined {
    mark = savedMark(folder);
    try {
      return readSaved(folder);
    } catch (error) {
      const reason = storageMessage(error);
      if (!hasTold) log.warn({ folder, reason }, "what a gateway has kept of its configuration cannot be read");
      hasTold = true;
      return undefined;
    }
  }

  const saved = look();
  let seen = saved?.newest.version;
  const database = new ConfigDatabase(undefined, log);
  const salt = lazily(() => keySalt(database, log));
  const began = beginning(saved, options, salt);
  const compiled = await compiledBeginning(began, options);
  if (!compiled.ok) return compiled;
  const { standing, newest, resumed } = began;
  const running = { ...compiled.snapshot, ...(resumed && newest !== undefined && { version: newest.version }) };
  logEffectWarnings(log, running.settings);
  const start = { unsaved: [], standing, isStandingKept: true };
  const store = new ConfigStore({ ...options, snapshot: running, database, start, salt });

  async function follow(): Promise<void> {
    if (savedMark(folder) === mark) return;
    const saved = look();
    if (saved === undefined || saved.newest.version === seen) return;
    if (saved.standing.file.hash !== store.history.standing.file.hash) {
      // One of both has not read an edit of the file yet: what was made behind it counts when both have.
      mark = "";
      return;
    }
    seen = saved.newest.version;
    const result = await store.follow(saved.newest.document, saved.standing.revoked);
    if (result.ok) return;
    const reason = describeChangeError(result.error);
    log.error({ version: seen, reason }, "a change of the configuration is refused; the running one stays");
  }

  return {
    ok: true,
    store,
    resumed,
    followSaved(intervalMs = FOLLOW_INTERVAL_MS) {
      const timer = setInterval(() => void follow(), intervalMs);
      timer.unref();
      return () => clearInterval(timer);
    },
  };
}
