// Asks the gateway: the public admin API and nothing else, with the sign-in that the browser holds.

import type { CurlRequest } from "../curl.ts";

/** An answer that is an error, or none at all. */
export class ApiError extends Error {
  /** 0: the gateway was not reached. */
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds: number | undefined;

  constructor(status: number, message: string, details: Record<string, unknown> = {}, retryAfterSeconds?: number) {
    super(message);
    this.status = status;
    this.details = details;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The same request may succeed later: the gateway was not reached, was busy, or failed. */
export function mayPass(thrown: unknown): boolean {
  return thrown instanceof ApiError && (thrown.status === 0 || thrown.status === 429 || thrown.status >= 500);
}

const NOTABLE_SKEW_MS = 2_000;
/** Beyond this a gateway that was asked something counts as away. */
const MAX_ANSWER_MS = 30_000;

export type Api = ReturnType<typeof createApi>;

/**
 * @param base - address of the root of the gateway
 * @param signedOut - the sign-in is missing or over
 */
export function createApi(base: string, signedOut: (error: ApiError) => void) {
  let skewMs = 0;

  /** Clocks that differ by a moment count as the same. */
  function noteTime({ headers }: Response): void {
    const dateMs = Date.parse(headers.get("date") ?? "");
    if (Number.isNaN(dateMs)) return;
    const differenceMs = dateMs + 500 - Date.now();
    skewMs = Math.abs(differenceMs) > NOTABLE_SKEW_MS ? differenceMs : 0;
  }

  async function ask<Answer>(request: CurlRequest, signal?: AbortSignal): Promise<Answer> {
    const late = new AbortController();
    // A change may take long, and is not known to have failed.
    const timer = request.method === "GET" ? setTimeout(() => late.abort(), MAX_ANSWER_MS) : undefined;
    try {
      return await send<Answer>(request, signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]));
    } catch (error) {
      if (error instanceof ApiError || signal?.aborted) throw error;
      throw new ApiError(0, late.signal.aborted ? "The gateway does not answer." : "The gateway cannot be reached.");
    } finally {
      clearTimeout(timer);
    }
  }

  async function send<Answer>({ method, path, body }: CurlRequest, signal: AbortSignal): Promise<Answer> {
    const response = await fetch(new URL(path, base), {
      method,
      signal,
      ...(body !== undefined && { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
    });
    noteTime(response);
    const answer = parsed(await response.text());
    // GET /admin/health says unhealthy with a whole answer.
    if (response.ok || (response.status === 503 && !hasError(answer))) return answer as Answer;
    const error = toError(response, answer);
    if (error.status === 401) signedOut(error);
    throw error;
  }

  return {
    base,
    ask,
    /** Milliseconds by the gateway's clock. */
    now: (): number => Date.now() + skewMs,
    get: <Answer>(path: string, signal?: AbortSignal): Promise<Answer> => ask({ method: "GET", path }, signal),
  };
}

/** undefined: a proxy may answer with anything. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface ErrorBody {
  error: { message?: unknown; details?: Record<string, unknown> };
}

function hasError(answer: unknown): answer is ErrorBody {
  return typeof answer === "object" && answer !== null && "error" in answer && typeof answer.error === "object";
}

export function toError(response: Response, answer: unknown): ApiError {
  const { message, details } = hasError(answer) ? answer.error : {};
  const retryAfter = Number(response.headers.get("retry-after"));
  return new ApiError(
    response.status,
    typeof message === "string" ? message : `The gateway answered with status ${response.status}.`,
    details,
    retryAfter > 0 ? retryAfter : undefined,
  );
}

/** For something that was thrown: what to tell of it. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The problems that a refused change has told, field by field. */
export function problemsOf(thrown: unknown): { field: string; message: string }[] {
  const errors = thrown instanceof ApiError ? thrown.details.validation_errors : undefined;
  if (!Array.isArray(errors)) return [];
  return (errors as { field?: unknown; error?: unknown; message?: unknown }[]).map(({ field, error, message }) => ({
    field: String(field ?? ""),
    message: String(error ?? message ?? ""),
  }));
}
