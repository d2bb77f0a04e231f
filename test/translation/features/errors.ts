// Errors: before the answer, inside a stream, and streams that break off.

import { failure, type ScriptedAnswer, text } from "../../support/strict/script.ts";
import type { Feature } from "./feature.ts";
import { asks } from "./words.ts";

const group = "Errors";

function refused(status: number, title: string, more: { retryAfter?: string; type?: string } = {}): Feature {
  return {
    id: `error-${status}`,
    group,
    title,
    ask: () => asks(),
    script: [failure(status, "scripted: no luck", more)],
    expectsErrors: true,
    reads({ status: seen, error, retryAfter }) {
      if (seen < 400 || error === undefined || error.type === "" || error.message === "") return false;
      if (more.retryAfter !== undefined && retryAfter !== more.retryAfter) return false;
      const type = `\`${error.type}\``;
      if (!error.message.includes("scripted: no luck")) return `${seen}, ${type}, in the gateway's own words`;
      return seen === status ? true : `as ${seen}, ${type}`;
    },
  };
}

const LONG = "This is a long text that never comes to its end, for something happens on the way to the reader.";

function broken(id: string, title: string, breakWith: ScriptedAnswer["breakWith"]): Feature {
  return {
    id,
    group,
    title,
    ask: () => asks(),
    script: [{ parts: [text(LONG)], breakAfterFrames: 8, ...(breakWith !== undefined && { breakWith }) }],
    expectsErrors: true,
    differs: true,
    reads(reading, { streamed }) {
      const { status, end, error, parts, finish } = reading;
      if (!streamed) return status >= 500 && error !== undefined && error.type !== "";
      const [part] = parts;
      const isBegun = part?.type === "text" && part.text.length > 5 && LONG.startsWith(part.text);
      if (status !== 200 || !isBegun || end !== "error") return false;
      return (
        error !== undefined &&
        error.type + String(error.code ?? "") !== "" &&
        error.message !== "" &&
        !/^(stop|end_turn|completed)/.test(finish)
      );
    },
  };
}

export const ERRORS: readonly Feature[] = [
  refused(400, "400 from the backend"),
  refused(401, "401 from the backend"),
  refused(403, "403 from the backend"),
  refused(404, "404 from the backend"),
  refused(429, "429 with Retry-After", { retryAfter: "7" }),
  refused(500, "500 from the backend"),
  refused(503, "503 from the backend"),
  refused(529, "529 (overloaded) from the backend"),
  broken("stream-error", "An error inside a stream: the client's own error event", {
    status: 503,
    message: "scripted: overloaded",
  }),
  broken("stream-cut", "A stream that breaks off: an error event, never a clean end", "cut"),
];
