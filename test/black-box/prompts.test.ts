// /admin/config/prompts: prompt files that take effect at once, and no way out of their folder.

import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AdminClient } from "../support/admin-client.ts";
import { chat } from "../support/openai-answers.ts";
import { RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

async function start(global_prompts: object = { default_file: "default.md" }, { token }: { token?: string } = {}) {
  const backend = bed.backend({ answer: chat("x") });
  const gateway = await bed.gateway({
    config: {
      backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m", "n"] }],
      global_prompts,
      ...(token !== undefined && { admin: { auth: { method: "bearer_token", token } } }),
    },
    files: { "prompts/default.md": "Default.\n", "prompts/sub/other.txt": "Other.\n", "outside.md": "sekret outside" },
    awaitHealth: token === undefined,
  });
  const systemPrompt = async (model = "m"): Promise<string | undefined> => {
    await (await gateway.chat({ model })).text();
    const { messages } = backend.lastRequest.json<{ messages: { role: string; content: string }[] }>();
    return messages.find(({ role }) => role === "system")?.content;
  };
  return { gateway, admin: new AdminClient(gateway), systemPrompt };
}

test("a file is listed, read and updated, and the very next request uses it", async () => {
  const { gateway, admin, systemPrompt } = await start();
  expect(await systemPrompt()).toBe("Default.");
  expect(await admin.get("/admin/config/prompts")).toEqual({
    prompts: [
      {
        path: "default.md",
        size: 9,
        modified_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        used_by: ["global_prompts.default_file"],
      },
      { path: "sub/other.txt", size: 7, modified_at: expect.any(String), used_by: [] },
    ],
    total: 2,
  });
  expect(await admin.get("/admin/config/prompts/sub/other.txt")).toMatchObject({ content: "Other.\n", size: 7 });

  const version = await admin.version();
  for (const text of ["First.", "Second.", "Third."]) {
    expect(await admin.ok("PUT", "/admin/config/prompts/default.md", { content: `${text}\n` })).toEqual({
      success: true,
      message: expect.stringContaining("next request"),
      path: "default.md",
    });
    expect(await systemPrompt()).toBe(text);
  }
  expect(readFileSync(join(gateway.folder, "prompts/default.md"), "utf8")).toBe("Third.\n");
  expect(await admin.get("/admin/config/prompts/default.md")).toMatchObject({ content: "Third.\n" });
  // The configuration is what it was.
  expect(await admin.version()).toBe(version);
  await gateway.restart();
  expect(await systemPrompt()).toBe("Third.");
});

test("a new file is created, and used as soon as the configuration names it", async () => {
  const { admin, systemPrompt } = await start({});
  expect(await systemPrompt("n")).toBeUndefined();
  await admin.refused(400, "PATCH", "/admin/config/global_prompts", { models: { n: { prompt_file: "new/n.prompt" } } });
  expect(await admin.ok("PUT", "/admin/config/prompts/new/n.prompt", { content: "For n." })).toMatchObject({
    message: expect.stringContaining("created"),
  });
  await admin.ok("PATCH", "/admin/config/global_prompts", { models: { n: { prompt_file: "new/n.prompt" } } });
  expect(await systemPrompt("n")).toBe("For n.");
  await admin.ok("PUT", "/admin/config/prompts/new/n.prompt", { content: "Again for n." });
  expect([await systemPrompt("n"), await systemPrompt("m")]).toEqual(["Again for n.", undefined]);
});

test("a file that the configuration does not name is removed; one that it names stays", async () => {
  const { gateway, admin, systemPrompt } = await start();
  const link = join(gateway.folder, "prompts/link.md");
  symlinkSync(join(gateway.folder, "prompts/sub/other.txt"), link);
  await admin.ok("DELETE", "/admin/config/prompts/link.md");
  expect(existsSync(link)).toBe(false);
  expect(await admin.ok("DELETE", "/admin/config/prompts/sub/other.txt")).toEqual({
    success: true,
    message: "The prompt file was removed.",
    path: "sub/other.txt",
  });
  await admin.refused(404, "DELETE", "/admin/config/prompts/sub/other.txt");
  const refused = await admin.refused(409, "DELETE", "/admin/config/prompts/default.md");
  expect(refused.message).toContain("global_prompts.default_file");
  expect(await systemPrompt()).toBe("Default.");
  await admin.refused(400, "DELETE", "/admin/config/prompts/..%2Foutside.md");
  expect(existsSync(join(gateway.folder, "outside.md"))).toBe(true);
});

test("reload reads what was edited on disk; a broken file changes nothing", async () => {
  const { gateway, admin, systemPrompt } = await start();
  const path = join(gateway.folder, "prompts/default.md");
  writeFileSync(path, "Edited.");
  expect(await admin.ok("POST", "/admin/config/prompts/reload")).toMatchObject({ success: true, reloaded: 1 });
  expect(await systemPrompt()).toBe("Edited.");
  writeFileSync(path, new Uint8Array([0xff, 0xfe]));
  expect((await admin.refused(400, "POST", "/admin/config/prompts/reload")).fields).toEqual([
    "global_prompts.default_file",
  ]);
  expect(await systemPrompt()).toBe("Edited.");
  await admin.ok("PUT", "/admin/config/prompts/default.md", { content: "Repaired." });
  expect(await systemPrompt()).toBe("Repaired.");
});

test("1 MiB is the most, and what is too much is not written", async () => {
  const { gateway, admin } = await start();
  const mebibyte = 1024 * 1024;
  await admin.ok("PUT", "/admin/config/prompts/large.md", { content: "x".repeat(mebibyte) });
  await admin.refused(413, "PUT", "/admin/config/prompts/larger.md", { content: "x".repeat(mebibyte + 1) });
  await admin.refused(413, "PUT", "/admin/config/prompts/larger.md", { content: "x".repeat(9 * mebibyte) });
  expect(existsSync(join(gateway.folder, "prompts/larger.md"))).toBe(false);
});

describe("bad input", () => {
  const OUTSIDE = [
    "../outside.md",
    "..%2Foutside.md",
    "%2e%2e/outside.md",
    "%2E%2E%2Foutside.md",
    "sub/..%2f..%2foutside.md",
    "..%5Coutside.md",
    "%2Fetc%2Fhostname.md",
    "//etc/hostname.md",
    "outside.md%00.txt",
    "%00",
    "link.md",
    "folder/outside.md",
    "folder/new/new.md",
  ];

  test("no path leads out of the folder, for reading or for writing", async () => {
    const { gateway, admin } = await start();
    symlinkSync(join(gateway.folder, "outside.md"), join(gateway.folder, "prompts/link.md"));
    symlinkSync(gateway.folder, join(gateway.folder, "prompts/folder"));
    const names = readdirSync(gateway.folder).sort();
    const body = '{"content":"overwritten"}';
    for (const path of OUTSIDE) {
      for (const method of ["GET", "PUT"]) {
        const connection = await RawConnection.open(gateway.port);
        const head = `${method} /admin/config/prompts/${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`;
        connection.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
        const { status, text } = await connection.response();
        if (status !== 400 && status !== 404) throw new Error(`${method} ${path} answered ${status}`);
        expect(text).not.toContain("sekret");
        expect(text).not.toContain(gateway.folder);
      }
    }
    expect(readFileSync(join(gateway.folder, "outside.md"), "utf8")).toBe("sekret outside");
    expect(readdirSync(gateway.folder).sort()).toEqual(names);
    await admin.get("/admin/config/prompts");
  });

  test("other files of the folder are nobody's business", async () => {
    const { gateway, admin } = await start({ default_file: "prompts/default.md", prompts_dir: "." });
    expect((await admin.refused(400, "GET", "/admin/config/prompts/gateway.yaml")).param).toBe("path");
    await admin.refused(400, "PUT", "/admin/config/prompts/gateway.yaml", { content: "x" });
    await admin.refused(400, "GET", "/admin/config/prompts/data/config.db");
    const { prompts } = await admin.get("/admin/config/prompts");
    expect((prompts as { path: string }[]).map(({ path }) => path)).not.toContain("gateway.yaml");
    expect((await gateway.fetch("/health")).status).toBe(200);
  });

  test.each(["", "{", "7", '{"content":7}', '{"content":null}', '{"content":"a","content":"b"}', '{"context":"a"}'])(
    "400 for the body %j",
    async (body) => {
      const { gateway, admin } = await start();
      await admin.refused(400, "PUT", "/admin/config/prompts/default.md", body);
      expect(readFileSync(join(gateway.folder, "prompts/default.md"), "utf8")).toBe("Default.\n");
    },
  );

  test("without credentials nothing is read or written", async () => {
    const { gateway, admin } = await start(undefined, { token: "sekret-token" });
    await admin.refused(401, "GET", "/admin/config/prompts");
    await admin.refused(401, "GET", "/admin/config/prompts/default.md");
    await admin.refused(401, "PUT", "/admin/config/prompts/default.md", { content: "x" });
    await admin.refused(401, "POST", "/admin/config/prompts/reload");
    const known = new AdminClient(gateway, { Authorization: "Bearer sekret-token" });
    expect(await known.get("/admin/config/prompts/default.md")).toMatchObject({ content: "Default.\n" });
  });
});
