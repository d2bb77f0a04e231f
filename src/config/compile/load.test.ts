// Loading: discovery, both formats, and every bad input told with its place, all at once, never with a secret.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { documentSchema } from "../sections/registry.ts";
import { formatPath } from "../values/values.ts";
import { type LoadOptions, loadConfig } from "./load.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "config-load-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function put(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await Bun.write(path, content);
  return path;
}

function load(options: Partial<LoadOptions> = {}) {
  return loadConfig({
    env: {},
    cwd: folder,
    home: join(folder, "home"),
    systemFolder: join(folder, "etc"),
    ...options,
  });
}

async function settingsOf(name: string, content: string, env: Record<string, string> = {}) {
  const result = await load({ path: await put(name, content), env });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.snapshot.settings;
}

/** Problems as `line: path: message`. */
async function problemsOf(name: string, content: string | Uint8Array, env: Record<string, string> = {}) {
  const path = await put(name, content);
  const result = await load({ path, env });
  if (result.ok) throw new Error("expected problems");
  for (const problem of result.problems) expect(problem.file).toBe(path);
  return result.problems.map((problem) => `${problem.line}: ${formatPath(problem.path)}: ${problem.message}`);
}

describe("discovery", () => {
  test("no file at all means the defaults", async () => {
    const result = await load({ clock: { now: () => 0, wallTime: () => 42 } });
    expect(result).toEqual({
      ok: true,
      found: undefined,
      prepared: expect.anything(),
      snapshot: {
        version: 1,
        document: {},
        settings: documentSchema.parse({}),
        attachments: {
          promptFiles: new Map(),
          authorities: new Map(),
          keySets: new Map(),
          hookModules: new Map(),
          metadata: [],
          facts: [],
          files: new Map(),
        },
        appliedAtMs: 42,
        path: undefined,
        baseDir: folder,
        overrides: [],
        includedFiles: new Map(),
      },
    });
  });

  test("goes by the documented order", async () => {
    const order = [
      "config.yaml",
      "config.yml",
      "config.toml",
      "xdg/signalbox/config.yaml",
      "xdg/signalbox/config.toml",
      "etc/config.yml",
      "etc/config.toml",
    ];
    for (const name of order) await put(name, "");
    for (const name of order) {
      expect(await load({ env: { XDG_CONFIG_HOME: join(folder, "xdg") } })).toMatchObject({
        ok: true,
        found: join(folder, name),
      });
      await rm(join(folder, name));
    }
  });

  test("~/.config stands in for an unset, empty or relative XDG_CONFIG_HOME", async () => {
    const path = await put("home/.config/signalbox/config.yaml", "");
    for (const env of [{}, { XDG_CONFIG_HOME: "" }, { XDG_CONFIG_HOME: "xdg" }]) {
      expect(await load({ env })).toMatchObject({ ok: true, found: path });
    }
  });

  test("a folder called config.yaml is told, not passed over", async () => {
    await mkdir(join(folder, "config.yaml"));
    expect(await load()).toMatchObject({
      ok: false,
      problems: [{ message: "cannot be read: it is a folder, not a file" }],
    });
  });

  test("relative paths and ~ work for --config, and paths of the snapshot are absolute", async () => {
    await put("sub/a.yaml", "");
    await put("home/b.yaml", "");
    expect(await load({ path: "sub/a.yaml" })).toMatchObject({
      snapshot: { path: join(folder, "sub/a.yaml"), baseDir: join(folder, "sub") },
    });
    expect(await load({ path: "~/b.yaml" })).toMatchObject({ found: join(folder, "home/b.yaml") });
  });
});

describe("files that cannot be read", () => {
  test("a missing file, a folder, a circle of links, a path with a NUL", async () => {
    await symlink("loop.yaml", join(folder, "loop.yaml"));
    const reasons = {
      "missing.yaml": "cannot be read: there is no such file",
      ".": "cannot be read: it is a folder, not a file",
      "loop.yaml": "cannot be read: its symbolic links go in a circle",
    };
    for (const [path, message] of Object.entries(reasons)) {
      const result = await load({ path });
      expect(result).toMatchObject({
        ok: false,
        path: join(folder, path),
        prepared: undefined,
        problems: [{ path: [], message, file: join(folder, path) }],
      });
    }
    expect(await load({ path: "a\0b" })).toMatchObject({ ok: false });
  });

  test("a device without end", async () => {
    expect(await load({ path: "/dev/zero" })).toMatchObject({ problems: [{ message: "is larger than 8 MiB" }] });
  });

  test("text that is not UTF-8", async () => {
    const message = ["undefined: : is not valid UTF-8 text"];
    expect(await problemsOf("a.yaml", new Uint8Array([0x61, 0x3a, 0x20, 0xff]))).toEqual(message);
    expect(await problemsOf("a.toml", Buffer.from("\ufeffretry = 1", "utf16le"))).toEqual(message);
  });
});

describe("documents", () => {
  test.each(["a.yaml", "a.yml", "a.toml", "a"])("an empty %s is an empty document", async (name) => {
    for (const content of ["", "\n", "# comment\n", "\ufeff"]) {
      expect(await settingsOf(name, content)).toEqual(documentSchema.parse({}));
    }
  });

  test("JSON is YAML, windows line ends are fine, an empty section is its default", async () => {
    expect((await settingsOf("a.json", '{"retry": {"max_attempts": 4}}')).retry.max_attempts).toBe(4);
    expect((await settingsOf("a.yaml", "retry:\r\n  max_attempts: 4\r\n")).retry.max_attempts).toBe(4);
    expect((await settingsOf("a.toml", "[retry]\r\nmax_attempts = 4\r\n")).retry.max_attempts).toBe(4);
    expect((await settingsOf("a.yaml", "backends:\nretry:\n")).backends).toEqual([]);
  });

  test("YAML 1.2: yes is text, aliases work", async () => {
    expect(await problemsOf("a.yaml", "%YAML 1.1\n---\nretry:\n  jitter: yes\n")).toEqual([
      "4: retry.jitter: expected true or false, found a string",
    ]);
    const settings = await settingsOf(
      "a.yaml",
      "retry: &r {max_attempts: 4}\nbackends:\n  - {name: a, retry_override: *r}\n",
    );
    expect(settings.backends[0]?.retry_override).toEqual({ max_attempts: 4 });
  });

  test("TOML and YAML say the same", async () => {
    const yaml = await settingsOf(
      "a.yaml",
      "backends:\n  - name: a\n    api_version: 2024-10-21\n    health_check: {endpoint: /x}\n  - name: b\n    headers: {X-A: b}\n",
    );
    const toml = await settingsOf(
      "a.toml",
      '[[backends]]\nname = "a"\napi_version = 2024-10-21\nhealth_check.endpoint = "/x"\n[[backends]]\nname = "b"\n[backends.headers]\nX-A = "b"\n',
    );
    expect(toml).toEqual(yaml);
  });

  test("${VARIABLE} expands in settings only, and is typed where a string is not wanted", async () => {
    const path = await put("a.yaml", "backends:\n  - {name: '${NAME}', weight: '${W:-7}', models: '${MODELS}'}\n");
    const result = await load({ path, env: { NAME: "one", MODELS: "x,y" } });
    if (!result.ok) throw new Error("expected a snapshot");
    expect(result.snapshot.settings.backends[0]).toMatchObject({ name: "one", weight: 7, models: ["x", "y"] });
    expect(result.snapshot.document).toMatchObject({ backends: [{ name: "${NAME}", weight: "${W:-7}" }] });
  });

  test("other spellings of keys become the canonical ones", async () => {
    const path = await put(
      "a.yaml",
      "backends: [{name: a, kind: ollama}]\napi_keys: {api_keys: [{key: long-enough}]}\n",
    );
    expect(await load({ path })).toMatchObject({
      snapshot: {
        document: { backends: [{ name: "a", type: "ollama" }], api_keys: { keys: [{ key: "long-enough" }] } },
        settings: { backends: [{ type: "ollama" }] },
      },
    });
  });
});

describe("syntax problems", () => {
  test.each<[string, string, string[]]>([
    [
      "a.yaml",
      "a: [1,\nretry: 2",
      ["2: : the indentation does not fit the lines around it, or a bracket is not closed"],
    ],
    ["a.yaml", "retry:\n\tjitter: true\n", ["2: : a tab in the indentation; use blanks"]],
    ["a.yaml", "retry: {}\n---\nretry: {}\n", ["2: : there must be one document only; remove the second ---"]],
    [
      "a.yaml",
      "retry: {}\nserver: *x\n",
      ['2: : a value that starts with "*" is an alias; quote it if it is meant as text'],
    ],
    ["a.yaml", "? [x]\n: 1\n", ["1: : a key must be plain text"]],
    [
      "a.yaml",
      "a: !secret x\n",
      ["1: : tags (words that start with !) are not supported; quote the value if it is meant as text"],
    ],
    ["a.yaml", "- a\n", ["undefined: : expected a mapping of sections at the top level"]],
    ["a.yaml", "hello\n", ["undefined: : expected a mapping of sections at the top level"]],
    ["a.yaml", "a: &a [*a]\n", ["undefined: : is nested too deeply"]],
    ["a.toml", "[retry]\njitter = true\njitter = false\n[server]\n", ["3: : cannot redefine key 'jitter'"]],
    ["a.toml", "a = [\n 1,\n]\nb = \n\nc = 1\n", ["4: : missing value after '='; values must be on the same line"]],
    ["a.toml", "[retry]\n\n\tjitter: true\n", ["3: : expected '=' after a key but found ':'"]],
    ["a.toml", "[[backends]]\napi_key = sk-secret\n", ["2: : strings must be quoted"]],
  ])("%s %j", async (name, content, expected) => {
    expect(await problemsOf(name, content)).toEqual(expected);
  });

  test("a duplicate key is told beside everything else", async () => {
    expect(await problemsOf("a.yaml", "retry:\n  jitter: 5\nlogging:\n  level: info\n  level: info\n")).toEqual([
      "5: : this key is given twice",
      "2: retry.jitter: expected true or false, found a number",
    ]);
  });

  const deep = 10_000;
  test.each<[string, string]>([
    ["a.yaml", "[".repeat(deep) + "]".repeat(deep)],
    ["a.yaml", `a: ${"{a: ".repeat(deep)}${"}".repeat(deep)}`],
    ["a.yaml", Array.from({ length: 2000 }, (_, index) => `${" ".repeat(index)}a:`).join("\n")],
    ["a.yaml", "- ".repeat(deep)],
    ["a.yaml", `a: ${"[".repeat(200)}${"]".repeat(200)}`],
    ["a.toml", `a = ${"[".repeat(deep)}${"]".repeat(deep)}`],
    ["a.toml", `a${".a".repeat(deep)} = 1`],
    ["a.toml", `a = ${"[".repeat(1_000_000)}`],
  ])("nesting without end in %s is a problem", async (name, content) => {
    expect((await problemsOf(name, content)).join()).toContain("nested too deeply");
  });

  test("aliases that would expand to gigabytes are a problem", async () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"];
    for (let level = 1; level < 12; level++) {
      lines.push(
        `a${level}: &a${level} [${Array(9)
          .fill(`*a${level - 1}`)
          .join(", ")}]`,
      );
    }
    expect(await problemsOf("a.yaml", lines.join("\n"))).toEqual(["undefined: : its aliases expand to too much"]);
  });

  test("keys such as __proto__ are unknown keys, nothing more", async () => {
    expect((await problemsOf("a.yaml", "__proto__: {polluted: true}\n"))[0]).toStartWith(
      "1: __proto__: unknown key `__proto__`",
    );
    expect((await problemsOf("a.toml", "[retry.__proto__]\npolluted = true\n"))[0]).toStartWith(
      "1: retry.__proto__: unknown key `__proto__`",
    );
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe("validation problems", () => {
  test("all at once, with lines, in YAML", async () => {
    const yaml = `server:
  bind_adress: x
  shutdown_timeout: 30
backends:
  - name: a b
    kind: opnai
    url: ftp://x
    weight: 500
  - url: http://x
    headers:
      "a b": c
    health_check:
      accept_status: []
      body: 5
retry: 7
logging: {level: inf}
timeouts: {zzzzzzzzzz: 1s}
`;
    const problems = await problemsOf("a.yaml", yaml);
    expect(problems.map((line) => line.replace(/; known are openai, .*;/, ";")).sort()).toEqual(
      [
        "2: server.bind_adress: unknown key `bind_adress`; did you mean `bind_address`?",
        '3: server.shutdown_timeout: expected a duration with its unit, such as "250ms", "30s", "5m" or "1h"',
        "5: backends[0].name: letters, digits, '-' and '_' only",
        "6: backends[0].kind: unknown kind; did you mean openai?",
        '7: backends[0].url: expected a URL that starts with "http://", "https://" or "unix:/", without a query',
        "8: backends[0].weight: must be at most 100",
        "9: backends[1].name: is required",
        "10: backends[1].headers: has a key that is not allowed: expected an HTTP header name",
        "13: backends[1].health_check.accept_status: must have at least 1 entry",
        "14: backends[1].health_check.body: expected a string or a mapping, found a number",
        "15: retry: expected a mapping, found a number",
        "16: logging.level: expected one of trace, debug, info, warn, error; did you mean info?",
        "17: timeouts.zzzzzzzzzz: unknown key `zzzzzzzzzz`; known are connect, first_byte, between_chunks, request, image_generation, request_body, models",
      ].sort(),
    );
  });

  test("a value that no header can have", async () => {
    const yaml = 'backends:\n  - {name: a, url: "http://h", api_key: "sekret\\n", headers: {x: "sekret\\x7f"}}\n';
    expect(await problemsOf("a.yaml", yaml)).toEqual([
      "2: backends[0].api_key: expected the value of an HTTP header, in one line",
      "2: backends[0].headers.x: expected the value of an HTTP header, in one line",
    ]);
  });

  test("all at once, with lines, in TOML", async () => {
    const toml = `# comment = "[x]"
[server]
bind_adress = """
[retry]
"""
[[backends]]
name = "a"
models = [
  "x", # ]
  5,
]

[[backends]]
name = "b"
  [backends.health_check]
  "endpoint" = "x"
[retry]
max_attempts = 0
`;
    expect(await problemsOf("a.toml", toml)).toEqual([
      "3: server.bind_adress: unknown key `bind_adress`; did you mean `bind_address`?",
      "8: backends[0].models[1]: expected a string, found a number",
      '16: backends[1].health_check.endpoint: expected a path that starts with "/"',
      "18: retry.max_attempts: must be at least 1",
    ]);
  });

  test("both spellings of a key, at the place of the other spelling", async () => {
    expect(await problemsOf("a.yaml", "backends:\n  - name: a\n    type: ollama\n    kind: vllm\n")).toEqual([
      "4: backends[0].kind: is another spelling of type, which is given too",
    ]);
  });

  test("an unset variable is one problem, which names the key and the variable", async () => {
    const path = await put("a.yaml", "backends:\n  - name: a\n    url: ${NOPE}\n");
    expect(await load({ path })).toMatchObject({
      problems: [
        {
          path: ["backends", 0, "url"],
          message: "the environment variable NOPE is not set",
          line: 3,
          file: path,
          variable: "NOPE",
        },
      ],
    });
  });

  test("a bad value says which variable it came from", async () => {
    expect(await problemsOf("a.yaml", "backends:\n  - {name: a, url: '${URL}'}\n", { URL: "sk-secret" })).toEqual([
      '2: backends[0].url: expected a URL that starts with "http://", "https://" or "unix:/", without a query (the value comes from URL)',
    ]);
  });

  test("checks of other layers are asked, with lines", async () => {
    const path = await put("a.yaml", "backends:\n  - name: a\n    kind: azure\n");
    const result = await load({
      path,
      checks: [
        (settings) => settings.backends.map((_, index) => ({ path: ["backends", index, "type"], message: "no" })),
      ],
    });
    expect(result).toMatchObject({ problems: [{ path: ["backends", 0, "kind"], message: "no", line: 3, file: path }] });
  });

  test("an address given twice", async () => {
    expect(
      await problemsOf("a.yaml", "server:\n  bind_address:\n    - a:1\n    - a:0\n    - a:0\n    - a:1\n"),
    ).toEqual(["6: server.bind_address[3]: is the same address as server.bind_address[0]"]);
  });
});

describe("secrets", () => {
  const secret = "sk-1234567890-secret";
  test.each([
    ["a.yaml", `backends:\n  - name: a\n    api_key: [${secret}]\n`],
    ["a.yaml", `backends:\n  - {name: a, api_key:${secret}}\n`],
    ["a.yaml", `backends:\n  - {name: a, headers: {Authorization:${secret} x: y}}\n`],
    ["a.yaml", `backends:\n  - name: a\n    api_key: "x" ${secret}\n`],
    ["a.yaml", `backends:\n  - name: a\n    api_key ${secret}\n`],
    ["a.yaml", `backends:\n  - name: a\n    api_key: *${secret}\n`],
    ["a.yaml", `backends:\n  - name: a\n    api_key: !${secret}\n`],
    ["a.yaml", `backends:\n  - name: a\n    api_key: "\${${secret}"\n`],
    ["a.yaml", `api_keys:\n  keys: [${secret}]\n`],
    ["a.yaml", `api_keys:\n  keys: [{${secret}}]\n`],
    ["a.yaml", `api_keys:\n  keys: [{key: ${secret}}, {key: ${secret}}]\n`],
    ["a.yaml", `api_keys: ${secret}\n`],
    ["a.toml", `[[backends]]\nname = "a"\napi_key = ${secret}\n`],
    ["a.toml", `[[backends]]\nname = "a"\napi_key = "x" ${secret}\n`],
    ["a.toml", `[[backends]]\nname = "a"\napi_key = "${secret}\n`],
    ["a.toml", `[[backends]]\nname = "a"\napi_key: ${secret}\n`],
    ["a.toml", `[[api_keys.keys]]\nkey = ["${secret}"]\n`],
  ])("never in a message: %s %j", async (name, content) => {
    expect((await problemsOf(name, content)).join("\n")).not.toContain(secret);
  });
});

describe("api_keys_file", () => {
  test("adds its keys, relative to the configuration file", async () => {
    await put("sub/keys.toml", '[[keys]]\nkey = "${KEY}"\nscopes = ["admin"]\n');
    const settings = await settingsOf(
      "sub/a.yaml",
      "api_keys:\n  api_keys_file: keys.toml\n  keys: [{key: long-enough}]\n",
      { KEY: "from-variable" },
    );
    expect(settings.api_keys.keys).toEqual([
      { key: "long-enough", scopes: ["read", "write", "files"], enabled: true },
      { key: "from-variable", scopes: ["admin"], enabled: true },
    ]);
  });

  test.each(["", "keys:\n", "keys: []\n"])("may be empty: %j", async (content) => {
    await put("keys.yaml", content);
    expect((await settingsOf("a.yaml", "api_keys: {api_keys_file: keys.yaml}\n")).api_keys.keys).toEqual([]);
  });

  test("problems name that file, beside those of the configuration", async () => {
    const keys = await put("keys.yaml", "keys:\n  - key: short\n  - key: ${NOPE}\n    scope: [read]\nbogus: 1\n");
    const path = await put("a.yaml", "api_keys: {api_keys_file: keys.yaml}\nretry: 5\n");
    const result = await load({ path });
    if (result.ok) throw new Error("expected problems");
    expect(result.problems).toEqual([
      { path: ["retry"], message: "expected a mapping, found a number", line: 2, file: path },
      {
        path: ["keys", 1, "key"],
        message: "the environment variable NOPE is not set",
        line: 3,
        file: keys,
        variable: "NOPE",
      },
      { path: ["keys", 0, "key"], message: "at least 8 characters", line: 2, file: keys },
      { path: ["keys", 1, "scope"], message: "unknown key `scope`; did you mean `scopes`?", line: 4, file: keys },
      { path: ["bogus"], message: "unknown key `bogus`; known are keys", line: 5, file: keys },
    ]);
  });

  test.each([
    [undefined, "cannot be read: there is no such file"],
    ["- a\n", "expected a mapping with the key keys at the top level"],
    ["keys: [\n", "the indentation does not fit the lines around it, or a bracket is not closed"],
  ])("%j: %s", async (content, message) => {
    if (content !== undefined) await put("keys.yaml", content);
    const result = await load({ path: await put("a.yaml", "api_keys: {api_keys_file: keys.yaml}\n") });
    expect(result).toMatchObject({ ok: false, problems: [{ message, file: join(folder, "keys.yaml") }] });
  });

  test("a key or id given twice is told at the later place, without the key", async () => {
    const keys = await put("keys.yaml", "keys:\n  - key: secret-one\n  - key: secret-two\n    id: one\n");
    const result = await load({
      path: await put("a.yaml", "api_keys:\n  api_keys_file: keys.yaml\n  keys:\n    - {key: secret-one, id: one}\n"),
    });
    expect(result).toMatchObject({
      problems: [
        { path: ["keys", 0, "key"], message: "is the same key as the 1st of the 3 keys", file: keys, line: 2 },
        { path: ["keys", 1, "id"], message: "is the same id as that of the 1st of the 3 keys", file: keys, line: 4 },
      ],
    });
  });
});

test("files in a bucket want the bucket, its keys, and no file that it cannot take in one request", async () => {
  const path = await put("bucket.yaml", "files: {storage: s3, max_file_size: 6000000000, s3: {bucket: b}}\n");
  const result = await load({ path });
  if (result.ok) throw new Error("expected problems");
  expect(result.problems.map(({ path: keys, message }) => `${keys.join(".")} ${message}`)).toEqual([
    "files.s3.access_key is required by storage s3",
    "files.s3.secret_key is required by storage s3",
    "files.max_file_size must be at most 5368709120 with storage s3: a bucket takes no more in one request",
  ]);
});
