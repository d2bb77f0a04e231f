// A backend's error body, in any of the shapes that backends use -> the standard error body.
// Shapes: wire/openai-chat.md section 5, wire/local-engines.md (older vLLM, Ollama, LM Studio, FastAPI).

const decoder = new TextDecoder();

export interface StandardError {
  message: string;
  type?: unknown;
  code?: unknown;
  param?: unknown;
}

/**
 * The body to forward for a backend error: the backend's own bytes when they already have the standard shape, else the
 * standard shape made from what can be read (specification, Errors: the fallback is 'Client error: HTTP <status>').
 */
export function forwardableErrorBody(status: number, body: Uint8Array): Uint8Array | string {
  const parsed = parseObject(body);
  if (parsed !== undefined && isStandard(parsed.error)) return body;
  const error = parsed === undefined ? undefined : readError(parsed);
  const isClientError = status < 500;
  return JSON.stringify({
    error: {
      code: error?.code ?? status,
      type: error?.type ?? (isClientError ? "invalid_request_error" : "backend_error"),
      message: error?.message ?? `${isClientError ? "Client" : "Backend"} error: HTTP ${status}`,
      ...(error?.param === undefined ? {} : { param: error.param }),
    },
  });
}

/** The message inside a backend error, for logs; cut, because a body may be long. */
export function errorMessage(body: Uint8Array): string | undefined {
  const parsed = parseObject(body);
  const message = parsed === undefined ? undefined : readError(parsed)?.message;
  return message?.slice(0, 500);
}

/**
 * The HTTP status that an error inside a 200 answer stands for: its numeric code when that is an error status, else 502.
 */
export function statusOfEmbeddedError(error: unknown): number {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
  const status = Number(code);
  return Number.isInteger(status) && status >= 400 && status <= 599 ? status : 502;
}

function parseObject(body: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(body));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // HTML and plain text are common here; the caller falls back to the status
  }
}

function isStandard(error: unknown): boolean {
  return isObject(error) && typeof error.message === "string" && typeof error.type === "string";
}

function readError(body: Record<string, unknown>): StandardError | undefined {
  const { error, detail, message } = body;
  if (isObject(error) && typeof error.message === "string") return error as unknown as StandardError;
  if (typeof error === "string") return { message: error };
  if (typeof message === "string") return { message, type: body.type, code: body.code, param: body.param };
  if (typeof detail === "string") return { message: detail };
  if (detail !== undefined) return { message: JSON.stringify(detail) };
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
