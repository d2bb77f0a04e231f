// Sends bad bodies to a strict backend: each must be refused for its field, and without the change it must pass.

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "./script.ts";
import type { StrictBackend } from "./server.ts";

export interface RefusalSuite {
  backend: () => StrictBackend;
  path: string;
  headers: Record<string, string>;
  /** A body that passes. */
  good: JsonObject;
  /** What is changed (undefined removes a member), and the field that is refused. */
  cases: readonly (readonly [what: string, change: JsonObject, field: string])[];
  /** Changes that must pass. */
  accepted?: readonly (readonly [what: string, change: JsonObject])[];
}

export function testRefusals(suite: RefusalSuite): void {
  const post = async (change: JsonObject): Promise<{ status: number; field: string | undefined; message: string }> => {
    const body = JSON.stringify({ ...suite.good, ...change });
    const headers = { "content-type": "application/json", ...suite.headers };
    const response = await fetch(suite.backend().url + suite.path, { method: "POST", headers, body });
    const message = await response.text();
    return { status: response.status, field: suite.backend().last.refused?.field, message };
  };

  describe("refuses", () => {
    test.each(suite.cases)("%s", async (_what, change, field) => {
      const answered = await post(change);
      expect(answered).toMatchObject({ status: 400, field });
      // The error itself names the field, too.
      expect(answered.message).toContain(field.split(/[.[]/)[0] as string);
    });
  });

  describe("accepts", () => {
    test.each([["the good body", {}] as const, ...(suite.accepted ?? [])])("%s", async (_what, change) => {
      expect(await post(change)).toMatchObject({ status: 200, field: undefined });
    });
  });
}
