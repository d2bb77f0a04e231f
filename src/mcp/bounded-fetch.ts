// fetch for MCP servers over HTTP, with bounds: where it may go, how large an answer or an event may be, and how long an
// answer to a message may take.

const MAX_BYTES = 32 * 1024 * 1024;
/** Statuses of answers that have no body. */
const BODILESS = [101, 204, 205, 304];

interface FetchBounds {
  /** From the request to the last byte of its answer; streams that the client opened to listen have no end. */
  answerWithinMs: number;
  maxBytes?: number;
}

export function createBoundedFetch({ answerWithinMs, maxBytes = MAX_BYTES }: FetchBounds) {
  return async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const { protocol } = new URL(url);
    if (protocol !== "http:" && protocol !== "https:") throw new Error("the address is neither http nor https");
    const late = new AbortController();
    const listens = (init.method ?? "GET").toUpperCase() === "GET";
    const timer = listens
      ? undefined
      : setTimeout(() => late.abort(new Error("the answer took too long")), answerWithinMs);
    const done = () => clearTimeout(timer);
    const signal = init.signal ? AbortSignal.any([init.signal, late.signal]) : late.signal;
    try {
      // The runtime's own limit of five minutes would end streams that wait for news.
      const response = await fetch(url, { ...init, signal, timeout: false } as RequestInit);
      if (response.body === null || BODILESS.includes(response.status)) {
        done();
        return response;
      }
      const isStream = response.headers.get("content-type")?.includes("text/event-stream") === true;
      const body = response.body.pipeThrough(bounded(maxBytes, isStream, done));
      return new Response(body, {
        status: response.status,
        statusText: response.statusText,
        headers: response.headers,
      });
    } catch (error) {
      done();
      throw error;
    }
  };
}

/** Limits a body, or each event of a stream of events. */
function bounded(maxBytes: number, isStream: boolean, done: () => void): TransformStream<Uint8Array, Uint8Array> {
  let length = 0;
  let last = "";
  return new TransformStream({
    transform(bytes, controller) {
      length += bytes.length;
      if (isStream) {
        // An empty line ends an event; it may be cut in two.
        const text = last + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
        const end = Math.max(text.lastIndexOf("\n\n"), text.lastIndexOf("\r\n\r\n"), text.lastIndexOf("\r\r"));
        if (end >= 0) length = text.length - end;
        last = text.slice(-3);
      }
      if (length <= maxBytes) controller.enqueue(bytes);
      else {
        done();
        controller.error(new Error(`the answer is larger than ${maxBytes} bytes`));
      }
    },
    flush: done,
  });
}
