// The Batch API: what it takes and refuses, and whose batches callers see.

import { beforeAll, describe, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { filePart, sendForm } from "../support/stored-files.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
let gateway: Gateway;

const FIRST = { Authorization: "Bearer sekret-first-key" };
const SECOND = { Authorization: "Bearer sekret-second-key" };

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [{ name: "demo", type: "demo" }],
      api_keys: {
        mode: "blocking",
        keys: [
          { key: "sekret-first-key", id: "first" },
          { key: "sekret-second-key", id: "second" },
        ],
      },
      batches: { max_open: 3 },
    },
  });
});

async function uploaded(content: string, headers: Record<string, string>, purpose = "batch"): Promise<string> {
  const form = [{ name: "purpose", content: purpose }, filePart(content, { filename: "batch.jsonl" })];
  const response = await sendForm(gateway, form, { headers });
  return ((await response.json()) as { id: string }).id;
}

const LINE = JSON.stringify({
  custom_id: "a",
  method: "POST",
  url: "/v1/chat/completions",
  body: { model: "demo", messages: [{ role: "user", content: "Hello!" }] },
});

function created(body: object, headers = FIRST): Promise<Response> {
  return gateway.post("/v1/batches", body, { headers });
}

describe("a batch", () => {
  test("is listed and found by its owner only", async () => {
    const input = await uploaded(LINE, FIRST);
    const asked = { input_file_id: input, endpoint: "/v1/chat/completions", completion_window: "24h" };
    const response = await created({ ...asked, metadata: { team: "a" } });
    expect(response.status).toBe(200);
    const batch = (await response.json()) as { id: string };
    expect(batch).toMatchObject({ object: "batch", status: "validating", metadata: { team: "a" } });
    const list = async (headers: Record<string, string>) =>
      ((await (await gateway.fetch("/v1/batches", { headers })).json()) as { data: { id: string }[] }).data;
    expect((await list(FIRST)).map(({ id }) => id)).toEqual([batch.id]);
    expect(await list(SECOND)).toEqual([]);
    expect((await gateway.fetch(`/v1/batches/${batch.id}`, { headers: FIRST })).status).toBe(200);
    const other = await gateway.fetch(`/v1/batches/${batch.id}`, { headers: SECOND });
    expect((await expectError(other, 404)).code).toBe("batch_not_found");
    const foreign = await created(asked, SECOND);
    expect((await expectError(foreign, 404)).param).toBe("file_id");
  });

  test.each([
    [{ endpoint: "/v1/images" }, "endpoint"],
    [{ completion_window: "1h" }, "completion_window"],
    [{ input_file_id: undefined }, "input_file_id"],
    [{ metadata: { a: 1 } }, "metadata"],
    [{ metadata: { a: "x".repeat(513) } }, "metadata"],
    [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`${index}`, ""])) }, "metadata"],
    [{ output_expires_after: { anchor: "created_at", seconds: 1 } }, "output_expires_after.seconds"],
  ])("is refused with %j", async (change, param) => {
    const input = await uploaded(LINE, FIRST);
    const asked = { input_file_id: input, endpoint: "/v1/chat/completions", completion_window: "24h" };
    expect((await expectError(await created({ ...asked, ...change }), 400)).param).toBe(param);
  });

  test("needs a file for batches", async () => {
    const input = await uploaded(LINE, FIRST, "user_data");
    const asked = { input_file_id: input, endpoint: "/v1/chat/completions", completion_window: "24h" };
    expect((await expectError(await created(asked), 400)).param).toBe("input_file_id");
  });
});
