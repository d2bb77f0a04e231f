// Hooks that loop, take memory, throw, answer late or change bodies to nonsense, while requests of others are answered.

import { beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({
  answer: (request) => (request.text.includes('"stream":true') ? chatStream(["One. ", "Two."]) : chat("hello")),
});

const EVENTS = ["request", "attempt", "answer", "chunk", "end"] as const;

const HOSTILE = `
import { change, defineHook } from "signalbox/hooks";
function misbehave(event) {
  const { behave, at } = event.options;
  if (event.info.model.endsWith("well") || at !== event.what) return undefined;
  if (behave === "loop") for (;;);
  if (behave === "throw") throw new Error("thrown");
  if (behave === "never") return new Promise(() => {});
  if (behave === "exit") process.exit(3);
  if (behave === "memory") {
    const held = [];
    for (let count = 0; count < 2048; count++) held.push(new Uint8Array(1024 * 1024).fill(1));
    return change({ text: String(held.length) });
  }
  if (behave === "nonsense") return { verdict: "change", body: [1], text: 7, result: "x", rest: {} };
  if (behave === "circle") {
    const body = {};
    body.body = body;
    return change({ body, text: "x" }, { state: body });
  }
}
const on = (what) => (event) => misbehave(Object.defineProperties({ what }, Object.getOwnPropertyDescriptors(event)));
export default defineHook({
  request: on("request"), attempt: on("attempt"), answer: on("answer"), chunk: on("chunk"), end: on("end"),
});
`;

const BEHAVIOURS = ["throw", "nonsense", "circle", "never"] as const;

let gateway: Gateway;
beforeAll(async () => {
  const hooks = [...BEHAVIOURS, "loop", "memory", "exit"].flatMap((behave) =>
    (behave === "loop" || behave === "memory" || behave === "exit" ? (["request"] as const) : EVENTS).map((at) => ({
      name: `${behave}-${at}`,
      module: behave === "memory" || behave === "loop" || behave === "exit" ? `./${behave}.ts` : "./hostile.ts",
      match: { model: `${behave}-${at}*` },
      timeout: behave === "never" ? "100ms" : behave === "loop" ? "200ms" : "20s",
      options: { behave, at },
    })),
  );
  gateway = await bed.gateway({
    config: {
      backends: [
        {
          name: "one",
          url: backend.url,
          models: [
            "others",
            "passing",
            "dead",
            "lenient-request",
            "lenient-attempt",
            ...hooks.flatMap(({ name }) => [name, `${name}-well`]),
          ],
        },
      ],
      health_checks: { enabled: false },
      hooks: [
        ...hooks,
        ...(["request", "attempt"] as const).map((event) => ({
          name: `lenient-${event}`,
          ...{ module: "./lenient.ts", events: [event], on_error: "pass" as const, timeout: "20s" },
          match: { model: `lenient-${event}` },
        })),
        { name: "dead", module: "./dead.ts", match: { model: "dead" } },
        { name: "passing", module: "./broken.ts", on_error: "pass", match: { model: "passing" } },
        { name: "edited", module: "./edited.ts", timeout: "10s", match: { operation: "completions" } },
      ],
    },
    files: {
      "hostile.ts": HOSTILE,
      "loop.ts": HOSTILE,
      "memory.ts": HOSTILE,
      "exit.ts": HOSTILE,
      "lenient.ts": `import { change, defineHook } from "signalbox/hooks";
const nonsense = () => change({ body: { nonsense: true } });
export default defineHook({ request: nonsense, attempt: nonsense });`,
      "dead.ts": "process.exit(1);",
      "broken.ts": "export default 1;",
      "edited.ts": edited("first"),
    },
  });
});

function edited(text: string): string {
  return `import { answer, defineHook } from "signalbox/hooks";
export default defineHook({ request: () => answer({ text: "${text}" }) });`;
}

const restartsOf = async (hook: string, cause: string) => {
  const metrics = await (await gateway.fetch("/metrics")).text();
  const line = metrics
    .split("\n")
    .find((each) => each.startsWith(`signalbox_hook_restarts_total{hook="${hook}",cause="${cause}"}`));
  return Number(line?.split(" ").at(-1) ?? 0);
};

/** Requests of others while something goes on; the greatest share of those that wait is of no interest here. */
async function othersDuring(work: Promise<unknown>): Promise<number> {
  let count = 0;
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    expect((await gateway.chat({ model: "others" })).status).toBe(200);
    count++;
  }
  await over;
  return count;
}

describe.each(BEHAVIOURS)("a hook that does this: %s", (behave) => {
  test.each(EVENTS.filter((event) => event !== "end"))(
    "at %s refuses the request, and the next one is answered",
    async (at) => {
      const model = `${behave}-${at}`;
      const stream = at === "chunk";
      const response = await gateway.chat({ model, stream });
      const text = await response.text();
      expect(text).toContain('"code":"hook_failed"');
      if (!stream) expect(response.status).toBe(503);
      expect((await gateway.chat({ model: `${model}-well` })).status).toBe(200);
    },
  );

  test("at end harms no request", async () => {
    for (let times = 0; times < 3; times++) expect((await gateway.chat({ model: `${behave}-end` })).status).toBe(200);
  });
});

test("a hook that loops is ended and started again, while others are answered", async () => {
  const response = gateway.chat({ model: "loop-request" });
  expect(await othersDuring(response)).toBeGreaterThan(0);
  expect((await response).status).toBe(503);
  await waitFor("the process is ended", async () => (await restartsOf("loop-request", "hang")) > 0);
  expect((await gateway.chat({ model: "loop-request-well" })).status).toBe(200);
});

test("a hook that takes 2 GB is ended, while others are answered", async () => {
  const response = gateway.chat({ model: "memory-request" });
  expect(await othersDuring(response)).toBeGreaterThan(0);
  expect((await response).status).toBe(503);
  expect(await restartsOf("memory-request", "memory")).toBeGreaterThan(0);
  expect((await gateway.chat({ model: "memory-request-well" })).status).toBe(200);
});

test("a hook that ends its process is started again", async () => {
  expect((await gateway.chat({ model: "exit-request" })).status).toBe(503);
  expect((await gateway.chat({ model: "exit-request-well" })).status).toBe(200);
});

test.each(["request", "attempt"])("a body of nonsense at %s is not used where the hook may fail", async (at) => {
  expect((await gateway.chat({ model: `lenient-${at}` })).status).toBe(200);
  expect(backend.lastRequest.json()).toMatchObject({ model: `lenient-${at}`, messages: [{ content: "hi" }] });
});

test("a module whose process never comes up keeps no request waiting", async () => {
  for (let times = 0; times < 3; times++) expect((await gateway.chat({ model: "dead" })).status).toBe(503);
});

test("a module without a hook passes where it may, and is told of", async () => {
  expect((await gateway.chat({ model: "passing" })).status).toBe(200);
  await waitFor("the log tells of it", () => gateway.printed.stderr.includes("could not be loaded"));
});

test("an edited module is loaded again, and one that is broken is not used", async () => {
  const ask = async () => {
    const response = await gateway.post("/v1/completions", { model: "others", prompt: "hi" });
    return ((await response.json()) as { choices: { text: string }[] }).choices[0]?.text;
  };
  expect(await ask()).toBe("first");
  const path = join(gateway.folder, "edited.ts");
  writeFileSync(path, edited("second"));
  await waitFor("the edited module answers", async () => (await ask()) === "second");
  writeFileSync(path, "this is no module {");
  await waitFor("the log tells of the broken one", () => gateway.printed.stderr.includes("earlier form goes on"));
  expect(await ask()).toBe("second");
});
