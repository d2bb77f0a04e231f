// The store of files: the list, the contents, uploads on their way from one to the other, and what goes when its time is over.

import { closeSync, mkdirSync, openSync, readdirSync, statSync, unlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError, unknownFile } from "../errors/gateway-error.ts";
import { inTime } from "../lib/abortable-delay.ts";
import { whenFree } from "../lib/durable-database.ts";
import { randomLetters } from "../lib/random-letters.ts";
import { type Catalogue, openCatalogue } from "./catalogue.ts";
import type { Arrived, ContentStorage, Recovered } from "./content-storage.ts";
import type { FileFacts, FileStore, StoredFile, UploadLimits } from "./file-store.ts";
import { lockFolder } from "./folder-lock.ts";
import { createSpool, noRoom } from "./incoming.ts";
import { createLocalStorage } from "./local-storage.ts";
import { createSharedList, type SharedList } from "./shared-list.ts";
import { isFull, reasonOf, storageTrouble, vanished } from "./storage-trouble.ts";

const CATALOGUE_NAME = "files.db";
const LOCK_NAME = "files.lock";

const EXPIRY_INTERVAL_MS = 60_000;
/** Files that are removed in one turn. */
const EXPIRY_BATCH = 200;
/** After the end of a store, for requests that began with it. */
const CLOSING_GRACE_MS = 60_000;

/** With more than these, requests wait for contents that are being removed: so these cannot pile up. */
const MOST_UNDER_WAY = 100;

/** A deletion is answered when the other gateways of a bucket see it, or after this time. */
const WITHDRAWAL_MS = 2_000;

const ID_LENGTH = 24;

export interface FileStoreParts {
  /** Of the list, of uploads under way, and of the contents where they stay on this machine. */
  folder: string;
  /** For what is not given a time of its own: seconds, undefined without an end. */
  retentionSeconds(): number | undefined;
  /** Milliseconds since the Unix epoch. */
  wallTime(): number;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** Default: the disk, in the same folder. */
  storage?: ((catalogue: Catalogue) => ContentStorage) | undefined;
}

/** A store, and when it has cleaned up behind a crash; undefined where other processes were using the folder. */
interface OpenedFileStore extends FileStore {
  readonly recovered: Promise<Recovered | undefined>;
  /** Removes some of what is over; resolves with the number. */
  expire(): Promise<number>;
}

/** Throws what file system and SQLite throw, when the folder cannot be used. */
export function createFileStore(parts: FileStoreParts): OpenedFileStore {
  const { folder, log } = parts;
  const incomingFolder = join(folder, "incoming");
  mkdirSync(incomingFolder, { recursive: true, mode: 0o700 });
  const openedAtMs = timeOfFiles(incomingFolder);
  let left: string[] = [];
  const lock = lockFolder(join(folder, LOCK_NAME), () => {
    left = readdirSync(incomingFolder);
  });
  const catalogue = openCatalogue(join(folder, CATALOGUE_NAME), parts.storage !== undefined);
  const leftovers = lock.wasAlone ? catalogue.leftovers() : [];
  const storage = parts.storage?.(catalogue) ?? createLocalStorage(join(folder, "contents"), catalogue);
  const life = createLife(() => {
    lock.release();
    setTimeout(() => catalogue.close(), CLOSING_GRACE_MS).unref();
  });
  const now = () => Math.floor(parts.wallTime() / 1000);
  const { shared: rows } = catalogue;
  const { list } = storage;
  const shared = rows && list && createSharedList({ catalogue, rows, list, now, log });
  const inside: StoreInside = { ...parts, catalogue, storage, shared, life, now };
  const receive = createSpool({
    folder: incomingFolder,
    newId,
    storedBytes: catalogue.totalBytes,
    store: (arrived, facts, limits, listed) => store(inside, arrived, facts, limits, listed),
    ended: life.leave,
  });
  const expire = () => life.during(() => expireSome(inside));
  const timer = setInterval(() => void expireAll(expire, inside), EXPIRY_INTERVAL_MS);
  timer.unref();

  async function recover(): Promise<Recovered | undefined> {
    if (!lock.wasAlone) return undefined;
    for (const name of left) await rm(join(incomingFolder, name), { force: true });
    const recovered = await storage.recover({ openedAtMs, leftovers, isClosed: () => life.isClosing });
    await removeContents(inside, catalogue.shared?.withdrawn().filter((id) => !catalogue.isKnown(id)) ?? []);
    const removed = { ...recovered, removedUploads: left.length };
    if (Object.values(removed).some((count) => count > 0)) {
      log.warn({ folder, ...removed }, "files that were not whole were removed, as after a crash");
    }
    await expireAll(expire, inside);
    return recovered;
  }

  return {
    ...reading(inside),
    receive(limits) {
      life.enter();
      return receive(limits);
    },
    delete: (owner, id) => life.during(() => deleteFile(inside, owner, id)),
    expire,
    recovered: life.during(recover).catch((error) => {
      log.warn({ folder, reason: reasonOf(error) }, "cleaning up the files failed; the next start tries again");
      return undefined;
    }),
    close() {
      clearInterval(timer);
      life.close();
    },
  };
}

/** The file system's own time for a file written now: its clock may differ, and has coarse ticks. */
function timeOfFiles(folder: string): number {
  const path = join(folder, crypto.randomUUID());
  closeSync(openSync(path, "wx", 0o600));
  const { mtimeMs } = statSync(path);
  unlinkSync(path);
  return mtimeMs;
}

interface StoreInside extends Pick<FileStoreParts, "log" | "retentionSeconds"> {
  catalogue: Catalogue;
  storage: ContentStorage;
  /** Undefined where the files are those of this machine. */
  shared: SharedList | undefined;
  life: Life;
  /** Unix time in seconds. */
  now(): number;
}

function reading({ catalogue, storage, shared, now, log }: StoreInside) {
  async function content(file: StoredFile, start: number, end: number) {
    const tell = (error: unknown) => log.warn({ id: file.id, reason: reasonOf(error) }, "a file could not be read");
    try {
      const found = await storage.slice(file.id, file.bytes, start, Math.min(end, file.bytes));
      if (found === undefined) throw catalogue.isKnown(file.id) ? vanished(file.id) : unknownFile("file_id");
      return found instanceof Blob ? found : exactly(Math.min(end, file.bytes) - start, found, tell);
    } catch (error) {
      if (!(error instanceof GatewayError)) tell(error);
      throw storageTrouble(error);
    }
  }
  return {
    find: (owner, id) => guarded(() => shared?.find(owner, id) ?? catalogue.find(owner, id, now())),
    async list(owner, query) {
      await shared?.follow(owner);
      return guarded(() => catalogue.list(owner, query, now()));
    },
    content,
    async read(file) {
      const found = await content(file, 0, file.bytes);
      const bytes = await new Response(found).bytes().catch((error) => {
        throw storageTrouble(error);
      });
      if (bytes.byteLength !== file.bytes) throw vanished(file.id);
      return bytes;
    },
    usage: () => guardedNow(() => catalogue.usage()),
  } satisfies Partial<FileStore>;
}

/**
 * A stream that breaks off, or is longer or shorter than it has to be, breaks off here, and that is reported. The runtime would
 * print the stack of an error of its own stream, which is no line of the log.
 */
function exactly(
  bytes: number,
  content: ReadableStream<Uint8Array>,
  tell: (error: unknown) => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = (content as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
  let left = bytes;
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        left -= value?.byteLength ?? 0;
        if (left < 0 || (done && left > 0)) throw new Error("the content has another size");
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        void reader.cancel().catch(() => {}); // it may have broken off itself
        tell(error);
        controller.error(error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** First the content, then the row, and only then is anybody told: what is listed is whole. */
async function store(
  inside: StoreInside,
  arrived: Arrived,
  facts: FileFacts,
  { maxTotalBytes }: UploadLimits,
  listed: () => void,
): Promise<StoredFile> {
  const { catalogue, storage, shared, log } = inside;
  const { id, bytes, sha256 } = arrived;
  const { owner, filename, mediaType, purpose } = facts;
  try {
    if (storage.notesLeftovers) await whenFree(() => catalogue.note(id));
    await storage.keep(arrived, mediaType);
    const createdAt = inside.now();
    const seconds = facts.expiresAfterSeconds ?? inside.retentionSeconds();
    const expiresAt = seconds === undefined ? undefined : createdAt + seconds;
    const file = { id, owner, filename, mediaType, purpose, bytes, sha256, createdAt, expiresAt };
    await shared?.publish(file);
    const isPublished = shared !== undefined;
    if (!(await whenFree(() => catalogue.insert(file, maxTotalBytes, isPublished)))) throw noRoom(maxTotalBytes);
    listed();
    return file;
  } catch (error) {
    if (!(error instanceof GatewayError)) log.warn({ reason: reasonOf(error) }, "a file could not be stored");
    await removeSoon(inside, id);
    throw storageTrouble(error);
  }
}

/** First the row, then the content: what a crash leaves between them is listed nowhere, and the next start removes it. */
async function deleteFile(inside: StoreInside, owner: string, id: string): Promise<boolean> {
  const { catalogue, storage, shared, now } = inside;
  const known = guardedNow(() => catalogue.find(owner, id, now()));
  if (known === undefined && (await shared?.find(owner, id)) === undefined) return false;
  try {
    if ((await whenFree(() => catalogue.remove([id], storage.notesLeftovers))) === 0) return false;
  } catch (error) {
    if (!isFull(error)) throw storageTrouble(error);
    // A full disk takes no change of the list: the content makes room for it.
    await storage.remove(id).catch(() => {}); // the row tells whether the file is gone
    guardedNow(() => catalogue.remove([id]));
  }
  await inTime(shared?.withdraw(id).catch(() => {}) ?? Promise.resolve(), WITHDRAWAL_MS); // removeContents() tells of trouble
  await removeSoon(inside, id);
  return true;
}

async function expireSome(inside: StoreInside): Promise<number> {
  const { catalogue, storage, now } = inside;
  const ids = catalogue.expired(now(), EXPIRY_BATCH);
  if (ids.length === 0) return 0;
  catalogue.remove(ids, storage.notesLeftovers);
  await removeContents(inside, ids);
  return ids.length;
}

async function expireAll(expire: () => Promise<number>, { log }: StoreInside): Promise<void> {
  try {
    while ((await expire()) === EXPIRY_BATCH);
  } catch (error) {
    log.warn({ reason: reasonOf(error) }, "files whose time is over could not be removed; they are hidden");
  }
}

/** A server that is slow or away is not waited for: what it still has is noted, and stands in no list. */
async function removeSoon(inside: StoreInside, id: string): Promise<void> {
  const { life, storage } = inside;
  const removed = life.during(() => removeContents(inside, [id]));
  if (!storage.notesLeftovers || life.underWay > MOST_UNDER_WAY) await removed;
}

/** Contents that cannot be removed now are removed after the next start. */
async function removeContents({ catalogue, storage, shared, log }: StoreInside, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    try {
      await shared?.withdraw(id);
      await storage.remove(id);
      if (storage.notesLeftovers) catalogue.forget(id);
    } catch (error) {
      log.warn({ id, reason: reasonOf(error) }, "the content of a file that is gone could not be removed");
    }
  }
}

async function guarded<Result>(task: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await task();
  } catch (error) {
    throw storageTrouble(error);
  }
}

function guardedNow<Result>(task: () => Result): Result {
  try {
    return task();
  } catch (error) {
    throw storageTrouble(error);
  }
}

type Life = ReturnType<typeof createLife>;

/** Counts what is under way; `over` is called once, when it was closed and nothing is. */
function createLife(over: () => void) {
  let underWay = 0;
  let isClosing = false;
  const leave = () => {
    underWay--;
    if (isClosing && underWay === 0) over();
  };
  return {
    get isClosing() {
      return isClosing;
    },
    get underWay() {
      return underWay;
    },
    enter() {
      underWay++;
    },
    leave,
    async during<Result>(task: () => Promise<Result>): Promise<Result> {
      underWay++;
      try {
        return await task();
      } finally {
        leave();
      }
    },
    close() {
      if (isClosing) return;
      isClosing = true;
      if (underWay === 0) over();
    },
  };
}

/** Not to be guessed: 36 to the power of 24. */
function newId(): string {
  return `file-${randomLetters(ID_LENGTH)}`;
}
