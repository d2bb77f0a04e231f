// Log lines as an operator sees them: their formats, their levels, and which of them never wait.

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { within } from "../../test/support/wait-for.ts";
import { silentLogger } from "./logger.ts";

/** What a program writes to its standard error that has a logger named log. */
async function logged(settings: Record<string, unknown>, program: string): Promise<string> {
  const script = `
    import { createLogger } from ${JSON.stringify(join(import.meta.dir, "logger.ts"))};
    const log = createLogger(${JSON.stringify({ level: "info", format: "json", access_log: true, ...settings })});
    ${program}`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "inherit", stderr: "pipe" });
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
    const writer = `import { infoLineWriter } from ${JSON.stringify(join(import.meta.dir, "logger.ts"))};`;
    const text = await logged(
      {},
      `${writer} infoLineWriter(log, "request")(${fields}); log.info(${fields}, "request");`,
    );
    const [own, pinos] = text
      .trimEnd()
      .split("\n")
      .map((line) => line.replace(ISO_TIME, "(time)"));
    expect(own).toContain("(time)");
    expect(own).toBe(pinos as string);
  });

  test("text: one line with time, level, message and fields, without colours", async () => {
    const text = await logged({ format: "text" }, `log.info({ request_id: "id-1" }, "request");`);
    expect(text).toMatch(ISO_TIME);
    expect(text).toContain("INFO: request");
    expect(text).toContain('"request_id":"id-1"');
    expect(text.trimEnd()).not.toContain("\n");
    expect(text).not.toContain("\u001b[");
  });

  test("pretty: coloured", async () => {
    const text = await logged({ format: "pretty" }, `log.info("request");`);
    expect(text).toContain("request");
    expect(text).toContain("\u001b[");
  });
});

test("lines of one kind follow the level and the format as they change", async () => {
  const program = `
    import { applyLogSettings, infoLineWriter } from ${JSON.stringify(join(import.meta.dir, "logger.ts"))};
    const write = infoLineWriter(log, "request");
    applyLogSettings(log, { level: "warn", format: "json", access_log: true });
    write({ request_id: "quiet" });
    applyLogSettings(log, { level: "info", format: "text", access_log: true });
    write({ request_id: "loud" });`;
  const text = await logged({}, program);
  expect(text).not.toContain("quiet");
  expect(text).toContain("INFO: request");
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
