// Prompt files through the admin API: what is shown and written, and every way out of the folder, which none must be.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { AdminClient } from "../../test/support/admin-client.ts";
import { RawConnection } from "../../test/support/raw-http.ts";
import { type ServedRoutes, serveRoutes, settingsOf } from "../../test/support/serve-routes.ts";
import { LARGEST_PROMPT_BYTES, type PromptFiles } from "../prompts/prompt-files.ts";
import { promptRoutes } from "./prompts.ts";

const SECRET = "sekret outside";
const PROMPTS = "/admin/config/prompts";

let base: string;
let folder: string;
let written: object;
let inForce: PromptFiles;
let served: ServedRoutes;
let admin: AdminClient;

beforeAll(async () => {
  served = await serveRoutes(
    promptRoutes({
      settings: () => settingsOf({ global_prompts: written }),
      promptFiles: {
        get baseDir() {
          return base;
        },
        home: undefined,
        current: () => inForce,
        async use(files) {
          inForce = files;
        },
      },
    }),
  );
  admin = new AdminClient(served);
});

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "admin-prompts-")));
  folder = join(base, "prompts");
  mkdirSync(join(folder, "sub"), { recursive: true });
  writeFileSync(join(folder, "a.md"), "A\n");
  writeFileSync(join(folder, "sub", "b.txt"), "B");
  writeFileSync(join(base, "outside.md"), SECRET);
  mkdirSync(join(base, "prompts-2"));
  writeFileSync(join(base, "prompts-2", "c.md"), SECRET);
  written = {};
  inForce = new Map();
});

const folders: string[] = [];
afterAll(async () => {
  await served.stop();
  for (const path of folders) rmSync(path, { recursive: true, force: true });
});
beforeEach(() => {
  folders.push(base);
});

const at = (path: string) => `${PROMPTS}/${path.split("/").map(encodeURIComponent).join("/")}`;
const put = (path: string, content: unknown) => admin.ok("PUT", at(path), { content });

/** Everything below the folder of the configuration that does not belong to prompts_dir. */
function outside(): unknown {
  return {
    names: readdirSync(base).sort(),
    others: readdirSync(join(base, "prompts-2")),
    texts: [readFileSync(join(base, "outside.md"), "utf8"), readFileSync(join(base, "prompts-2", "c.md"), "utf8")],
  };
}

describe("list", () => {
  test("every prompt file with its size, time and users", async () => {
    written = {
      default_file: "a.md",
      backends: { one: { prompt_file: "./sub/../a.md" } },
      models: { "org/m": { prompt_file: "sub/b.txt" } },
    };
    const modified_at = statSync(join(folder, "a.md")).mtime.toISOString();
    expect(await admin.get(PROMPTS)).toEqual({
      prompts: [
        {
          path: "a.md",
          size: 2,
          modified_at,
          used_by: ["global_prompts.default_file", "global_prompts.backends.one.prompt_file"],
        },
        {
          path: "sub/b.txt",
          size: 1,
          modified_at: expect.any(String),
          used_by: ['global_prompts.models["org/m"].prompt_file'],
        },
      ],
      total: 2,
    });
  });

  test("other files only where the configuration names them; hidden ones, and links that lead out, never", async () => {
    writeFileSync(join(folder, "config.yaml"), "x");
    writeFileSync(join(folder, "named.jinja"), "x");
    mkdirSync(join(folder, ".git"));
    writeFileSync(join(folder, ".git", "x.md"), "x");
    writeFileSync(join(folder, ".hidden.md"), "x");
    symlinkSync(join(base, "outside.md"), join(folder, "out.md"));
    symlinkSync(base, join(folder, "up"));
    symlinkSync(folder, join(folder, "sub", "loop"));
    symlinkSync("a.md", join(folder, "link.md"));
    symlinkSync("nowhere.md", join(folder, "dangling.md"));
    mkdirSync(join(folder, "folder.md"));
    written = { default_file: "named.jinja", models: { m: { prompt_file: "../outside.md" } } };
    const { prompts } = await admin.get(PROMPTS);
    expect((prompts as { path: string }[]).map(({ path }) => path)).toEqual([
      "a.md",
      "link.md",
      "named.jinja",
      "sub/b.txt",
    ]);
  });

  test("without the folder there are none", async () => {
    written = { prompts_dir: "none" };
    expect(await admin.get(PROMPTS)).toEqual({ prompts: [], total: 0 });
    await admin.refused(404, "GET", at("a.md"));
  });
});

describe("read", () => {
  test("the text as it stands in the file", async () => {
    writeFileSync(join(folder, "ü \u{1f600}.md"), "\uFEFFtext\r\n");
    expect(await admin.get(at("ü \u{1f600}.md"))).toEqual({
      path: "ü \u{1f600}.md",
      content: "\uFEFFtext\r\n",
      size: 9,
      modified_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    expect(await admin.get(`${PROMPTS}/sub%2Fb.txt`)).toMatchObject({ path: "sub/b.txt", content: "B" });
  });

  test("404 where there is none", async () => {
    for (const path of ["none.md", "sub/none.md", "a.md/x.md"]) await admin.refused(404, "GET", at(path));
  });

  test("400 for what is no prompt", async () => {
    writeFileSync(join(folder, "binary.md"), new Uint8Array([0xff, 0xfe]));
    writeFileSync(join(folder, "large.md"), "");
    truncateSync(join(folder, "large.md"), LARGEST_PROMPT_BYTES + 1);
    writeFileSync(join(folder, "config.yaml"), "api_key: sekret");
    mkdirSync(join(folder, "folder.md"));
    Bun.spawnSync(["mkfifo", join(folder, "pipe.md")]);
    for (const path of ["binary.md", "large.md", "config.yaml", "folder.md", "pipe.md", "sub"]) {
      expect((await admin.refused(400, "GET", at(path))).param).toBe("path");
    }
  });
});

describe("write", () => {
  test("replaces a file, and the next request uses it", async () => {
    written = { default_file: "a.md", models: { m: { prompt_file: "./a.md" }, n: { prompt_file: "sub/b.txt" } } };
    inForce = new Map([
      ["a.md", "A"],
      ["sub/b.txt", "B"],
    ]);
    chmodSync(join(folder, "a.md"), 0o640);
    expect(await put("a.md", "\uFEFFNew\n\n")).toEqual({
      success: true,
      message: "The prompt file was updated; the next request uses it.",
      path: "a.md",
    });
    expect(readFileSync(join(folder, "a.md"), "utf8")).toBe("\uFEFFNew\n\n");
    expect(statSync(join(folder, "a.md")).mode & 0o777).toBe(0o640);
    expect([...inForce]).toEqual([
      ["a.md", "New"],
      ["sub/b.txt", "B"],
      ["./a.md", "New"],
    ]);
    expect(readdirSync(folder).sort()).toEqual(["a.md", "sub"]);
  });

  test("another file that is broken is no obstacle", async () => {
    written = { default_file: "a.md", models: { m: { prompt_file: "gone.md" } } };
    await put("a.md", "New");
    expect([...inForce]).toEqual([["a.md", "New"]]);
  });

  test("creates files of every kind, folders on the way, and prompts_dir itself", async () => {
    written = { prompts_dir: "made/here", default_file: "x/y/new.prompt" };
    for (const path of ["new.md", "new.txt", "x/y/new.prompt", "NEW.MD"]) {
      expect(await put(path, "text")).toMatchObject({ path, message: expect.stringContaining("created") });
      expect(readFileSync(join(base, "made/here", path), "utf8")).toBe("text");
    }
    expect([...inForce]).toEqual([["x/y/new.prompt", "text"]]);
  });

  test("an unused file says so; an empty text is a text", async () => {
    expect(await put("new.md", "")).toMatchObject({ message: expect.stringContaining("no setting") });
    expect(readFileSync(join(folder, "new.md"), "utf8")).toBe("");
    expect(inForce.size).toBe(0);
  });

  test("a link inside the folder stays a link", async () => {
    symlinkSync("a.md", join(folder, "link.md"));
    written = { default_file: "link.md" };
    await put("link.md", "through");
    expect(readFileSync(join(folder, "a.md"), "utf8")).toBe("through");
    expect([...inForce]).toEqual([["link.md", "through"]]);
    await put("a.md", "itself");
    expect([...inForce]).toEqual([["link.md", "itself"]]);
  });

  test("1 MiB is the most for one file", async () => {
    await put("a.md", "x".repeat(LARGEST_PROMPT_BYTES));
    const error = await admin.refused(413, "PUT", at("a.md"), { content: "ü".repeat(LARGEST_PROMPT_BYTES / 2 + 1) });
    expect(error).toMatchObject({ type: "payload_too_large", param: "content" });
    expect(statSync(join(folder, "a.md")).size).toBe(LARGEST_PROMPT_BYTES);
    await admin.refused(413, "PUT", at("a.md"), { content: "x".repeat(9 * 1024 * 1024) });
  });

  test("50 MiB are the most for all, and less is always welcome", async () => {
    for (let index = 0; index < 50; index++) {
      writeFileSync(join(folder, `${index}.md`), "");
      truncateSync(join(folder, `${index}.md`), LARGEST_PROMPT_BYTES);
    }
    await admin.refused(413, "PUT", at("one-more.md"), { content: "x" });
    await admin.refused(413, "PUT", at("a.md"), { content: "AAA" });
    expect(existsSync(join(folder, "one-more.md"))).toBe(false);
    await put("0.md", "short");
    await put("one-more.md", "x");
  });

  test("no more than 1,000 files", async () => {
    for (let index = 0; index < 998; index++) writeFileSync(join(folder, "sub", `${index}.md`), "");
    await admin.refused(413, "PUT", at("one-more.md"), { content: "" });
    await put("a.md", "longer than before");
  });

  test.each([
    ["content", {}],
    ["content", { content: null }],
    ["content", { content: 5 }],
    ["content", { content: ["a"] }],
    ["contents", { content: "x", contents: "y" }],
  ])("'%s' is named: %j", async (field, body) => {
    expect((await admin.refused(400, "PUT", at("a.md"), body)).fields).toEqual([field]);
    expect(readFileSync(join(folder, "a.md"), "utf8")).toBe("A\n");
  });

  test.each([
    '"x"',
    "[]",
    "{",
    "",
    '{"content":"x","content":"y"}',
    '{"content":"\\ud800"}',
    new Uint8Array([0x22, 0xff]),
  ])("400 for the body %j", async (body) => {
    await admin.refused(400, "PUT", at("a.md"), body);
    expect(readFileSync(join(folder, "a.md"), "utf8")).toBe("A\n");
  });

  test("a folder that may not be written: 503 with the reason", async () => {
    written = { prompts_dir: "/proc/signalbox-test" };
    const error = await admin.refused(503, "PUT", at("new.md"), { content: "x" });
    expect(error).toMatchObject({ code: "changes_unavailable", message: expect.stringMatching(/: E[A-Z]+\./) });
  });

  test("readers see the old text or the new one", async () => {
    const texts = ["x", "y"].map((letter) => letter.repeat(200_000));
    await put("a.md", texts[0]);
    let isDone = false;
    const writing = Promise.all(Array.from({ length: 16 }, (_, turn) => put("a.md", texts[turn % 2]))).finally(() => {
      isDone = true;
    });
    while (!isDone) {
      const text = readFileSync(join(folder, "a.md"), "utf8");
      if (!texts.includes(text)) throw new Error(`half a text of ${text.length}`);
      await Bun.sleep(0);
    }
    await writing;
    expect(readdirSync(folder).sort()).toEqual(["a.md", "sub"]);
  });
});

describe("reload", () => {
  test("reads what the configuration names from disk", async () => {
    written = { default_file: "a.md", models: { m: { prompt_file: "sub/b.txt" } } };
    writeFileSync(join(folder, "a.md"), "edited\n");
    expect(await admin.ok("POST", `${PROMPTS}/reload`)).toEqual({
      success: true,
      message: expect.any(String),
      reloaded: 2,
    });
    expect([...inForce]).toEqual([
      ["a.md", "edited"],
      ["sub/b.txt", "B"],
    ]);
  });

  test("changes nothing when a file is broken, and names its key", async () => {
    written = { default_file: "gone.md", models: { m: { prompt_file: "a.md" } } };
    inForce = new Map([["gone.md", "before"]]);
    const { fields, type } = await admin.refused(400, "POST", `${PROMPTS}/reload`);
    expect({ fields, type }).toEqual({ fields: ["global_prompts.default_file"], type: "validation_error" });
    expect([...inForce]).toEqual([["gone.md", "before"]]);
  });
});

describe("no way out of the folder", () => {
  const PATHS = [
    "../outside.md",
    "..%2Foutside.md",
    "%2e%2e/outside.md",
    "%2e%2e%2foutside.md",
    ".%2e/outside.md",
    "sub/../../outside.md",
    "sub%2f..%2f..%2foutside.md",
    "../prompts-2/c.md",
    "..%2fprompts-2%2fc.md",
    "..%5coutside.md",
    "sub\\..\\..\\outside.md",
    "%252e%252e%252foutside.md",
    "..%c0%afoutside.md",
    "..%ef%bc%8foutside.md",
    "%00.md",
    "a.md%00",
    "..%2foutside.md%00.txt",
    "a.md%0a",
    "%2fetc%2fhostname",
    "/etc/hostname",
    "%2ftmp%2fx.md",
    "./outside.md",
    ".%2fa.md",
    "sub//b.txt",
    "sub%2f%2fb.txt",
    "sub/",
    "~/x.md",
    ".env.md",
    "sub/.b.md",
    `${"x".repeat(256)}.md`,
    `${"x/".repeat(9)}x.md`,
    "%ff.md",
    "%.md",
  ];

  test.each(PATHS)("%s, as it is on the wire", async (path) => {
    written = { default_file: "a.md" };
    const before = outside();
    for (const method of ["GET", "PUT"]) {
      const body = '{"content":"changed"}';
      const connection = await RawConnection.open(served.port);
      const head = `${method} ${PROMPTS}/${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n`;
      connection.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
      const { status, text } = await connection.response();
      expect(text).not.toContain("sekret");
      // Elsewhere than behind the prefix there is nothing; a name of unusual letters is a name.
      const isName = ["%252e", "~", "./"].some((start) => path.startsWith(start)) || path.includes("%ef%bc%8f");
      expect([400, 404, ...(isName ? [200] : [])]).toContain(status);
    }
    expect(outside()).toEqual(before);
    expect(readFileSync(join(folder, "a.md"), "utf8")).toBe("A\n");
  });

  test("links that lead out are neither read nor written, nor are folders made behind them", async () => {
    symlinkSync(join(base, "outside.md"), join(folder, "out.md"));
    symlinkSync(join(base, "prompts-2"), join(folder, "other"));
    symlinkSync("../../prompts-2", join(folder, "sub", "up"));
    const before = outside();
    for (const path of ["out.md", "other/c.md", "sub/up/c.md", "other/new.md", "other/new/new.md", "sub/up/x/y.md"]) {
      if (!path.includes("new") && !path.includes("y.md")) {
        expect((await admin.refused(400, "GET", at(path))).message).toContain("leads out");
      }
      expect((await admin.refused(400, "PUT", at(path), { content: "x" })).message).toContain("leads out");
    }
    expect(outside()).toEqual(before);
  });

  test("a link that leads nowhere becomes a file; a file is no folder", async () => {
    symlinkSync(join(base, "new.md"), join(folder, "dangling.md"));
    symlinkSync(join(base, "new-folder"), join(folder, "lost"));
    await put("dangling.md", "x");
    await admin.refused(400, "PUT", at("lost/x.md"), { content: "x" });
    await admin.refused(400, "PUT", at("a.md/x.md"), { content: "x" });
    await admin.refused(400, "PUT", at("sub"), { content: "x" });
    expect(readdirSync(base).sort()).toEqual(["outside.md", "prompts", "prompts-2"]);
  });

  test("whatever the path: refused, or inside", async () => {
    const part = fc.oneof(
      fc.constantFrom("..", ".", "", "sub", "a.md", "%2e%2e", "\\", "\0", "~", "C:", "outside.md", "...", "..md"),
      fc.string({ maxLength: 6 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 6 }), async (parts) => {
        const before = outside();
        const path = `${parts.join("/")}.md`;
        if (!path.isWellFormed()) return;
        const { status, text } = await admin.send("PUT", `${PROMPTS}/${encodeURIComponent(path)}`, {
          body: { content: "x" },
        });
        expect([200, 400]).toContain(status);
        expect(text).not.toContain(base);
        expect(outside()).toEqual(before);
      }),
      { numRuns: 200 },
    );
  });
});
