// Every client format, every backend format, every feature, over sockets through the running gateway.

import { beforeAll, describe, expect, test } from "bun:test";
import { BACKEND_NAMES } from "./backends.ts";
import { FEATURES } from "./features/all.ts";
import { PAGE, renderPage } from "./render.ts";
import { CLIENTS, isOwnEndpoint, type Matrix, runMatrix } from "./run.ts";

/** For the whole run; it takes a few seconds on two cores. */
const TIMEOUT_MS = 120_000;

let matrix: Matrix;

beforeAll(async () => {
  matrix = await runMatrix();
}, TIMEOUT_MS);

for (const client of CLIENTS) {
  for (const backend of BACKEND_NAMES) {
    if (isOwnEndpoint(client, { id: backend })) continue;
    describe(`${client.name} client, ${backend} backend`, () => {
      for (const feature of FEATURES) {
        if (feature.without?.includes(client.name)) continue;
        test(feature.title, () => {
          const cell = matrix.cells.find(
            (candidate) =>
              candidate.client === client && candidate.backend === backend && candidate.feature === feature,
          );
          expect(cell?.verdict.outcome === "failed" ? cell.verdict.note : undefined).toBeUndefined();
          expect(cell).toBeDefined();
        });
      }
    });
  }
}

describe("a conversation moves to another backend", () => {
  for (const client of CLIENTS) {
    if (client.name === "completions") continue;
    test(`of a ${client.name} client`, () => {
      const moves = matrix.moves.filter((move) => move.client === client);
      expect(moves.length).toBe(BACKEND_NAMES.length * (BACKEND_NAMES.length - 1) * 2);
      const problems = moves.filter(({ problem }) => problem !== undefined);
      expect(problems.map(({ from, to, streamed, problem }) => ({ from, to, streamed, problem }))).toEqual([]);
    });
  }
});

test("docs/compatibility.md says what the run found (else: sh bin/bun scripts/compatibility.ts)", async () => {
  expect(await Bun.file(PAGE).text()).toBe(renderPage(matrix));
});
