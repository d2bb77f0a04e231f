// Log lines as an operator sees them: their formats, their levels, and which of them never wait.

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { within } from "../../test/support/wait-for.ts";
import { silentLogger } from "./logger.ts";

/** What a program writes to its standard error that has a logger named log. */
async function logged(settings: Record<string, unknown>, program: string, onTerminal = false): Promise<string> {
  const script = `
    import { createLogger } from ${JSON.stringify(join(import.meta.dir, "logger.ts"))};
    const log = createLogger(${JSON.stringify({ level: "info", format: "json", access_log: true, ...settings })});
    ${program}`;
  const command = [process.execPath, "-e", script];
  if (onTerminal) {
    const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
    const terminal = Bun.spawn(["script", "-qefc", quoted, "/dev/null"], { stdin: "ignore", stdout: "pipe" });
    return await within("the program ends", new Response(terminal.stdout).text(), 10_000);
  }
  const child = Bun.spawn(command, { stdout: "inherit", stderr: "pipe" });
  return await within("the program ends", new Response(child.stderr).text(), 10_000);
}

const ISO_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/;

describe("formats", () => {
  const program = `log.info({ request_id: "id-1", status: 200 }, "request"); log.error({ err: new Error("broken") }, "bad");`;

  test("json: one object a line, with level names and ISO times, and nothing of the machine", async () => {
    const lines = (await logged({}, program)).trimEnd().split("\n");
    expect(lines.length).toBe(2);
    const [info, error] = lines.map((line) => JSON.parse(line));
    expect(info).toEqual({
      level: "info",
      time: expect.stringMatching(ISO_TIME),
      request_id: "id-1",
      status: 200,
      msg: "request",
    });
    expect(error).toMatchObject({ level: "error", msg: "bad", err: { message: "broken" } });
  });

  test("lines of one kind look as any other, and what is undefined is left out", async () => {
    const fields = `{ request_id: "id-1", path: "/\\u2028\\"\\n", status: 200, key: undefined, duration_ms: 0.1 }`;
    const writer = `import { lineWriter } from ${JSON.stringify(join(import.meta.dir, "logger.ts"))};`;
    const text = await logged(
      {},
      `${writer} lineWriter(log, "request")("info", ${fields}); log.info(${fields}, "request");`,
    );
    const [own, others] = text
      .trimEnd()
      .split("\n")
      .map((line) => line.replace(ISO_TIME, "(time)"));
    expect(own).toContain("(time)");
    expect(own).toBe(others as string);
  });

  test("text: one line with time, level and message in columns, then key=value, without colours", async () => {
    const fields = `{ request_id: "id-1", status: 200, note: "two words", odd: "a\\u001b[31m\\nb\\u0085" }`;
    const lines = await logged({ format: "text" }, `log.info(${fields}, "request"); log.error("bad");`);
    const [info, error] = lines.trimEnd().split("\n") as [string, string];
    expect(info.replace(ISO_TIME, "(time)")).toBe(
      `(time) INFO  request                  request_id=id-1 status=200 note="two words" odd="a\\u001b[31m\\nb\\u0085"`,
    );
    expect(error.replace(ISO_TIME, "(time)")).toBe("(time) ERROR bad");
    expect(lines).not.toContain("\u001b[");
  });

  test("pretty: the same, coloured, and the stack of an error below", async () => {
    const text = await logged({ format: "pretty" }, `log.error({ status: 500, err: new Error("broken") }, "bad");`);
    expect(text).toContain(`\u001b[0m \u001b[31mERROR\u001b[0m bad${" ".repeat(22)}`);
    expect(text).toContain("status=\u001b[0m500\n    Error: broken\n    at ");
  });

  test("where none is set: pretty on a terminal, else json", async () => {
    const program = `log.info({ status: 200 }, "request");`;
    expect(JSON.parse(await logged({ format: undefined }, program))).toMatchObject({ msg: "request" });
    expect(await logged({ format: undefined }, program, true)).toContain("\u001b[32mINFO \u001b[0m request");
    expect(JSON.parse(await logged({ format: "json" }, program, true))).toMatchObject({ msg: "request" });
  });
});

test("lines of one kind follow the level and the format as they change", async () => {
  const program = `
    import { applyLogSettings, lineWriter } from ${JSON.stringify(join(import.meta.dir, "logger.ts"))};
    const write = lineWriter(log, "request");
    applyLogSettings(log, { level: "warn", format: "json", access_log: true });
    write("info", { request_id: "quiet" });
    applyLogSettings(log, { level: "info", format: "text", access_log: true });
    write("info", { request_id: "loud" });`;
  const text = await logged({}, program);
  expect(text).not.toContain("quiet");
  expect(text).toContain("INFO  request");
  expect(text).toContain("loud");
});

test("lines below the level are left out", async () => {
  const text = await logged({ level: "warn" }, `log.info("quiet"); log.debug("quieter"); log.warn("loud");`);
  expect(text).not.toContain("quiet");
  expect(text).toContain("loud");
});

describe("which lines wait", () => {
  const kill = "process.kill(process.pid, 'SIGKILL'); while (true) Bun.sleepSync(1000);";

  for (const level of ["warn", "error"]) {
    for (const format of ["json", "text"]) {
      test(`${level} in ${format} is written at once, and what came before it, too`, async () => {
        const text = await logged({ format }, `log.info("before"); log.${level}("trouble"); ${kill}`);
        expect(text.indexOf("before")).toBeGreaterThanOrEqual(0);
        expect(text.indexOf("trouble")).toBeGreaterThan(text.indexOf("before"));
      });
    }
  }

  test("an info line waits for its batch, also after a warning", async () => {
    const text = await logged({}, `log.warn("trouble"); log.info("after"); ${kill}`);
    expect(text).toContain("trouble");
    expect(text).not.toContain("after");
  });

  test("the end of the process waits for them all", async () => {
    expect(await logged({}, `log.info("last words"); process.exit(0);`)).toContain("last words");
  });
});

test("the silent logger has no level on", () => {
  const log = silentLogger();
  expect((["trace", "info", "error", "fatal"] as const).map((level) => log.isLevelEnabled(level))).toEqual([
    false,
    false,
    false,
    false,
  ]);
});
