// Somebody else's file and one that never was take the same way: the same questions to the store, with the same answers.
// What takes the same way takes the same time, which no test can measure well.

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FileStore } from "../files/file-store.ts";
import { createFileStore } from "../files/store.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import type { Call } from "../server/endpoint.ts";
import { type FileParts, fileRoutes } from "./file-routes.ts";
import { OPENAI_FILES } from "./files.ts";
import { MESSAGES_FILES } from "./messages-files.ts";

const folder = mkdtempSync(join(tmpdir(), "file-isolation-"));
const lines: string[] = [];
const note = (_fields: object, message: string) => void lines.push(message);
const log = { info: note, warn: note };
const store = createFileStore({ folder, retentionSeconds: () => undefined, wallTime: Date.now, log });
afterAll(() => {
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

const UNKNOWN = `file-${"0".repeat(24)}`;

/** What is asked of the store, and what it answers. */
function watched(asked: unknown[]): FileStore {
  return new Proxy<FileStore>(store, {
    get(target, name) {
      const member = Reflect.get(target, name) as ((...given: unknown[]) => unknown) | undefined;
      if (member === undefined) return undefined; // a promise asks whether it has `then`
      return (...given: unknown[]) => {
        const answer = member.apply(target, given);
        asked.push([name, given, answer]);
        return answer;
      };
    },
  });
}

async function wayOf(endpoint: DescribedEndpoint, id: string): Promise<string> {
  const asked: unknown[] = [];
  const parts = { files: async () => watched(asked) } as unknown as FileParts;
  const routes = [...fileRoutes(parts, OPENAI_FILES), ...fileRoutes(parts, MESSAGES_FILES)];
  const route = routes.find(({ id: name }) => name === endpoint.id) as DescribedEndpoint;
  const call = {
    request: new Request(`http://localhost/?after=${id}&after_id=${id}`),
    context: {
      caller: { organizationId: "two", userId: undefined, keyId: "k" },
      settings: { files: { require_key: false } },
    },
    parameters: { file_id: id },
    headers: {},
  } as unknown as Call;
  const before = lines.length;
  const outcome = await Promise.resolve(route.handle(call)).then(
    (response) => response.text(),
    ({ status, message, param }) => ({ status, message, param }),
  );
  return JSON.stringify({ asked, outcome, logged: lines.length - before }).replaceAll(id, "ID");
}

const parts = {} as FileParts;
const reading = [...fileRoutes(parts, OPENAI_FILES), ...fileRoutes(parts, MESSAGES_FILES)].filter(
  ({ method }) => method !== "POST",
);

test("there are routes to try", () => expect(reading).toHaveLength(8));

test.each(reading.map((endpoint) => [endpoint.id, endpoint] as const))("%s", async (_id, endpoint) => {
  const incoming = store.receive({ maxFileBytes: 100, maxTotalBytes: 0 });
  await incoming.write(new Uint8Array(10));
  const facts = { owner: "organization:one", filename: "a", mediaType: "text/plain", purpose: "user_data" };
  const { id } = await incoming.finish({ ...facts, expiresAfterSeconds: undefined });
  const way = await wayOf(endpoint, id);
  expect(way).toBe(await wayOf(endpoint, UNKNOWN));
  expect(JSON.parse(way).asked).toHaveLength(1);
  expect(await store.find("organization:one", id)).toBeDefined();
});
