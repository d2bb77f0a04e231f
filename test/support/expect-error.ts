// Checks that an answer is an error in the standard shape (specification, Errors) and hands its fields out.

import { expect } from "bun:test";

export interface ErrorFields {
  message: string;
  type: string;
  code: string | number | null;
  param?: string | null;
  details?: Record<string, unknown>;
}

interface ErrorAnswer {
  status: number;
  headers: Headers | Record<string, string>;
}

/** `text` is the body of the answer; status may be several where the contract leaves the choice. */
export function expectErrorBody(answer: ErrorAnswer, text: string, status: number | readonly number[]): ErrorFields {
  const statuses = typeof status === "number" ? [status] : status;
  if (!statuses.includes(answer.status)) {
    throw new Error(
      `expected status ${statuses.join(" or ")}, got ${answer.status} with the body ${text.slice(0, 500)}`,
    );
  }
  const header = (name: string): string | null | undefined =>
    answer.headers instanceof Headers ? answer.headers.get(name) : answer.headers[name];
  expect(header("content-type") ?? "no content type").toContain("application/json");
  expect(header("x-request-id") ?? "").not.toBe("");
  const { error } = JSON.parse(text) as { error: ErrorFields };
  expect(typeof error.message).toBe("string");
  expect(error.message).not.toBe("");
  expect(typeof error.type).toBe("string");
  // A backend's own error may say null: its fields are preserved.
  if (error.code !== null) expect(["string", "number"]).toContain(typeof error.code);
  // The inside of the gateway is nobody's business.
  expect(error.message).not.toMatch(/\bat .*\.ts|node_modules|TypeError|SyntaxError/);
  return error;
}

export async function expectError(response: Response, status: number | readonly number[]): Promise<ErrorFields> {
  return expectErrorBody(response, await response.text(), status);
}
