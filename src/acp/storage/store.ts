// Where sessions are kept beyond their time in memory, and what is kept of one.

import type { Mode } from "../../agent/agent.ts";
import type { ToolKind, ToolLocation } from "../../agent/updates.ts";
import type { Message } from "../../generation/content.ts";
import type { Effort } from "../../generation/request.ts";

/** Times are ISO 8601. */
export interface SessionHead {
  sessionId: string;
  createdAt: string;
  updatedAt: string;
  /** Absolute. */
  cwd: string;
  /** More folders of the project, absolute. */
  additionalDirectories: readonly string[];
  /** Undefined before the first prompt. */
  title: string | undefined;
}

export interface StoredChoices {
  mode: Mode;
  model: string | undefined;
  effort: Effort | undefined;
}

/** How a call of a tool was shown, for a replay: the conversation itself knows the model's words only. */
export interface CallNote {
  title: string;
  kind: ToolKind;
  locations: ToolLocation[];
}

export interface StoredSession extends SessionHead, StoredChoices {
  history: Message[];
  /** Keys are the ids of the calls. */
  calls: Map<string, CallNote>;
}

/** The records of a session, in the order in which they happen. */
export type SessionRecord =
  | { type: "message"; at: string; message: Message }
  | ({ type: "choices"; at: string } & Partial<StoredChoices>)
  | { type: "title"; at: string; title: string }
  | { type: "place"; at: string; cwd: string; additionalDirectories: readonly string[] }
  | ({ type: "call"; id: string } & CallNote);

/** The log of a session that this process holds. */
export interface SessionLog {
  /** Written when it returns. Throws the file system's error; then nothing of the record is there. */
  append(record: SessionRecord): void;
  /** Bytes written so far. */
  readonly sizeBytes: number;
  /** Lets the session go: another process may open it. */
  close(): void;
}

export interface SessionStore {
  /** Throws the file system's error. */
  create(session: SessionHead & StoredChoices): Promise<SessionLog>;
  /** Undefined: there is none of this id. Throws RpcError where another process holds it, or it cannot be read. */
  open(sessionId: string): Promise<{ session: StoredSession; log: SessionLog } | undefined>;
  /** The latest first. */
  list(): AsyncIterable<SessionHead>;
  /** False: there is none. Throws RpcError where another process holds it. */
  delete(sessionId: string): boolean;
}
