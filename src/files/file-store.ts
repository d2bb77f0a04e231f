// What an uploaded file is, and what keeps them: one store with one list, whichever dialect asks. Everything is asked for by
// the owner (access/owner.ts) and the id: another owner's file is as unknown as one that never was.

export interface StoredFile {
  /** "file-" and 24 letters and digits. */
  id: string;
  owner: string;
  /** As the client gave it, checked: no path, no control characters, at most 255 characters. */
  filename: string;
  /** As the client declared it, without parameters; "application/octet-stream" where it declared none. */
  mediaType: string;
  purpose: string;
  bytes: number;
  /** The digest of the content, in hex. */
  sha256: string;
  /** Unix times in seconds. */
  createdAt: number;
  expiresAt: number | undefined;
}

/** Facts that a client gives about its file; known when the whole form has been read, and not before. */
export type FileFacts = Pick<StoredFile, "owner" | "filename" | "mediaType" | "purpose"> & {
  /** Seconds from now; undefined: files.retention. */
  expiresAfterSeconds: number | undefined;
};

/** The limits of section `files` that concern an upload, in bytes; a total of 0: none. */
export interface UploadLimits {
  maxFileBytes: number;
  maxTotalBytes: number;
}

/** A file while it arrives: listed nowhere, and gone without a trace unless it is finished. */
export interface IncomingFile {
  /** Throws GatewayError 413 beyond a limit and 503 where the storage is full; the file is discarded then. */
  write(piece: Uint8Array): void | Promise<void>;
  /** The file is whole: when this resolves it is listed, and a crash does not lose it. Rejects as write() throws. */
  finish(facts: FileFacts): Promise<StoredFile>;
  /** Nothing of it stays. Safe to call at any time, also after finish(), when it does nothing. */
  discard(): void;
}

export interface FileQuery {
  /** From 1 to 10,000. */
  limit: number;
  order: "asc" | "desc";
  purpose?: string | undefined;
  /** Ids of files that the page begins behind, or ends before; of an unknown one it is as if it were not given. */
  after?: string | undefined;
  before?: string | undefined;
}

export interface FilePage {
  files: readonly StoredFile[];
  hasMore: boolean;
}

/** Counts all files, and those of each owner. */
export interface FileUsage {
  count: number;
  bytes: number;
  owners: readonly { owner: string; count: number; bytes: number }[];
}

export interface FileStore {
  receive(limits: UploadLimits): IncomingFile;
  /** Undefined also for files of others and for those whose time is over. */
  find(owner: string, id: string): Promise<StoredFile | undefined>;
  list(owner: string, query: FileQuery): Promise<FilePage>;
  /** False where find() finds nothing. */
  delete(owner: string, id: string): Promise<boolean>;
  /**
   * Bytes from `start` up to `end`, which is not among them; rejects when they cannot be had: with 404 where the file was
   * deleted in the meantime. A Blob opens its file when it is read.
   */
  content(file: StoredFile, start: number, end: number): Promise<Blob | ReadableStream<Uint8Array>>;
  /** All of it; to be asked only of files whose size is known to be bearable. */
  read(file: StoredFile): Promise<Uint8Array>;
  usage(): FileUsage;
  /** Work under way goes on to its end. */
  close(): void;
}

/** The store of the current configuration, opened when it is first asked for; undefined while files.enabled is false. */
export type FilesInUse = () => Promise<FileStore> | undefined;

/** The form of a file's id, of this store or of a vendor's. */
export const FILE_ID_PATTERN = "^file[-_][A-Za-z0-9_-]{1,128}$";
const FILE_ID = new RegExp(FILE_ID_PATTERN);

export function isFileId(text: string): boolean {
  return FILE_ID.test(text);
}
