// The JavaScript of the documentation, pasted into files and run by Node, with nothing changed but the address and the folder.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../architecture/source-files.ts";
import { pngImage } from "../support/png-images.ts";
import { readSnippets } from "../support/snippets.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const folder = mkdtempSync(join(tmpdir(), "snippets-"));
const snippets = (await readSnippets()).filter(({ language }) => language === "js");
const titled = snippets.map(({ page, code }, index) => ({
  title: `${page}, ${index + 1} of ${snippets.length}`,
  code,
}));
let url = "";

beforeAll(async () => {
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const b64_json = Buffer.from(pngImage({ width: 4, height: 4 })).toString("base64");
  const answer = {
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ created: 7, data: [{ b64_json }] }),
  };
  const vendor = bed.backend({ models: ["gpt-image-1", "dall-e-2"], answer });
  const backends = [
    { name: "demo", type: "demo" as const },
    { name: "vendor", type: "openai" as const, url: vendor.url, api_key: "sekret-vendor" },
  ];
  ({ url } = await bed.gateway({ config: { backends } }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("there are those of every SDK", () => {
  const packages = ["openai", "@anthropic-ai/sdk", "@google/genai", "ai", "ollama"];
  expect(packages.filter((name) => !snippets.some(({ code }) => code.includes(`from "${name}"`)))).toEqual([]);
});

// One after the other: an image is drawn before it is edited.
test.each(titled)("$title", async ({ code }) => {
  const path = join(folder, "pasted.mjs");
  writeFileSync(path, code.replaceAll("http://127.0.0.1:8080", url).replaceAll("/tmp/", `${folder}/`));
  const child = Bun.spawn(["node", path], { cwd: folder, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const told = await new Response(child.stderr).text();
  expect((await child.exited) === 0 ? "it runs" : told).toBe("it runs"); // SDKs warn of models that they do not know
});
