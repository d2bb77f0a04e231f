// Why a command has no good answer, in words that hold nothing of what was asked or answered.

export interface Fault {
  kind: "timeout" | "closed" | "refused" | "bad-answer";
  /** The reason for the log. */
  reason: string;
}

export const CLOSED: Fault = { kind: "closed", reason: "the connection cannot be opened, or was closed" };

/** An answer that the server would not give if it were what it should be. */
export class BadAnswer extends Error {}

/** The first word of an error of the server says what kind of error it is, such as OOM, READONLY or NOPERM. */
const ERROR_WORD = /^[A-Z]{2,20}\b/;

/** The fault for an error that a command has thrown. */
export function commandFault(error: unknown): Fault {
  if (error instanceof BadAnswer) return { kind: "bad-answer", reason: "an answer that cannot be used" };
  const word = serverErrorWord(error);
  if (word !== undefined) return { kind: "refused", reason: `the server answers with the error ${word}` };
  const code = codeOf(error);
  if (code === "ERR_REDIS_CONNECTION_CLOSED" || code === "ERR_REDIS_CONNECTION_TIMEOUT") {
    return CLOSED;
  }
  if (isFault(error)) return error;
  return { kind: "bad-answer", reason: `an answer that is not Redis (${code ?? "unknown"})` };
}

/** Undefined for anything but an error that the server has answered with. */
export function serverErrorWord(error: unknown): string | undefined {
  if (codeOf(error) !== "ERR_REDIS_SERVER_ERROR") return undefined;
  return ERROR_WORD.exec(error instanceof Error ? error.message : "")?.[0] ?? "ERR";
}

function isFault(error: unknown): error is Fault {
  return typeof (error as Fault | undefined)?.kind === "string" && typeof (error as Fault).reason === "string";
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}
