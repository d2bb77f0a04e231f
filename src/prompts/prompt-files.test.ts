// Prompts from files: priorities, the walls of the folder, and every way a file can be wrong.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { documentSchema } from "../config/sections/registry.ts";
import { LARGEST_PROMPT_BYTES, loadPromptFiles } from "./prompt-files.ts";
import { createPrompts, type PromptSettings } from "./resolve.ts";

let baseDir: string;

beforeAll(async () => {
  baseDir = await mkdtemp(join(tmpdir(), "prompts-"));
  const put = (path: string, content: string | Uint8Array) => Bun.write(join(baseDir, path), content);
  await mkdir(join(baseDir, "prompts/sub"), { recursive: true });
  await put("prompts/default.md", "from the file\n");
  await put("prompts/sub/model.md", "\uFEFFfor the model\r\n");
  await put("prompts/largest.md", "x".repeat(LARGEST_PROMPT_BYTES));
  await put("prompts/too-large.md", "x".repeat(LARGEST_PROMPT_BYTES + 1));
  await put("prompts/binary.md", new Uint8Array([0xff, 0xfe, 0x00]));
  await put("prompts-secret/outside.md", "outside");
  await symlink(join(baseDir, "prompts-secret/outside.md"), join(baseDir, "prompts/link.md"));
  await symlink(join(baseDir, "prompts/default.md"), join(baseDir, "prompts/inner-link.md"));
});

afterAll(() => rm(baseDir, { recursive: true, force: true }));

type Written = NonNullable<Parameters<typeof documentSchema.parse>[0]>;

function settings(global_prompts: object): PromptSettings {
  return documentSchema.parse({ global_prompts } as Written).global_prompts;
}

async function load(written: object) {
  const compiled = settings(written);
  const loaded = await loadPromptFiles(compiled, { baseDir, home: undefined });
  if (!loaded.ok)
    throw new Error(loaded.problems.map(({ path, message }) => `${path.join(".")}: ${message}`).join("\n"));
  return createPrompts(compiled, loaded.files);
}

async function problemsOf(written: object): Promise<string[]> {
  const loaded = await loadPromptFiles(settings(written), { baseDir, home: undefined });
  return loaded.ok ? [] : loaded.problems.map(({ path, message }) => `${path.join(".")}: ${message}`);
}

describe("priorities", () => {
  test("model, then backend, then default; a file wins over a text", async () => {
    const prompts = await load({
      default: "inline",
      default_file: "default.md",
      backends: { b: { prompt: "for the backend" } },
      models: { m: { prompt: "inline", prompt_file: "sub/model.md" }, quiet: { prompt: "" } },
    });
    expect(prompts.promptFor("m", "b")).toBe("for the model");
    expect(prompts.promptFor("other", "b")).toBe("for the backend");
    expect(prompts.promptFor("other", "c")).toBe("from the file");
    expect(prompts.promptFor("quiet", "b")).toBeUndefined();
    expect(prompts.promptFor("toString", "constructor")).toBe("from the file");
  });

  test("without prompts nothing is added", async () => {
    expect((await load({})).promptFor("m", "b")).toBeUndefined();
  });

  test("strategy and separator are those of the settings", async () => {
    const prompts = await load({ default: "P", merge_strategy: "append", separator: "|" });
    expect(prompts.merge).toEqual({ strategy: "append", separator: "|" });
  });
});

describe("files", () => {
  test("links inside the folder and the largest size are fine", async () => {
    expect((await load({ default_file: "inner-link.md" })).promptFor("m", "b")).toBe("from the file");
    expect((await load({ default_file: "largest.md" })).promptFor("m", "b")).toHaveLength(LARGEST_PROMPT_BYTES);
  });

  const DEFAULT = "global_prompts.default_file: ";
  const OUTSIDE = `${DEFAULT}is outside prompts_dir; move the file into that folder, links do not count`;
  test.each([
    ["missing.md", `${DEFAULT}there is no such file in prompts_dir`],
    ["../prompts-secret/outside.md", OUTSIDE],
    ["../nowhere.md", OUTSIDE],
    ["/etc/hostname", OUTSIDE],
    ["sub/../../prompts-secret/outside.md", OUTSIDE],
    ["link.md", OUTSIDE],
    [".", OUTSIDE],
    ["sub", `${DEFAULT}is not a file`],
    ["too-large.md", `${DEFAULT}is larger than 1 MiB; shorten it`],
    ["binary.md", `${DEFAULT}is not valid UTF-8 text; save it as UTF-8`],
  ])("%s", async (default_file, problem) => {
    expect(await problemsOf({ default_file })).toEqual([problem]);
  });

  test("every problem names its key", async () => {
    expect(
      await problemsOf({
        backends: { b: { prompt_file: "no.md" } },
        models: { "org/m": { prompt_file: "neither.md" } },
      }),
    ).toEqual([
      "global_prompts.backends.b.prompt_file: there is no such file in prompts_dir",
      "global_prompts.models.org/m.prompt_file: there is no such file in prompts_dir",
    ]);
    expect(await problemsOf({ prompts_dir: "nowhere", default_file: "default.md" })).toEqual([
      "global_prompts.prompts_dir: there is no such folder; create it, or name the folder of the prompt files",
    ]);
    expect(await problemsOf({ prompts_dir: "nowhere", default: "inline" })).toEqual([]);
  });

  test("all files together are limited", async () => {
    for (let index = 0; index < 51; index++) {
      await Bun.write(join(baseDir, `prompts/many/${index}.md`), "x".repeat(LARGEST_PROMPT_BYTES));
    }
    const models = Object.fromEntries(
      Array.from({ length: 51 }, (_, index) => [`m${index}`, { prompt_file: `many/${index}.md` }]),
    );
    expect(await problemsOf({ models })).toEqual([
      "global_prompts.models.m50.prompt_file: the prompt files are larger than 50 MiB together; shorten them",
    ]);
  });
});
