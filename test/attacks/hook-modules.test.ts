// Modules of hooks that misbehave beyond what hostile-hooks.test.ts shows: at their parent, their questions, what they return and what
// they leave behind.

import { beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BackendStatus, Gateway } from "../support/gateway.ts";
import { chat, chatStream } from "../support/openai-answers.ts";
import { isAlive } from "../support/process-groups.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({
  answer: async (request) => {
    const { stream, model } = request.json();
    if (model === "held") await waitFor("the rest is refused", () => existsSync(join(gateway.folder, "refused")));
    return stream === true ? chatStream(["One. ", "Two."]) : chat("hello");
  },
});

/** Questions of one call at a time. */
const MOST_ASKS = 16;

const deep = "let deep = []; for (let level = 0; level < 5_000; level++) deep = [deep];";

/** What the module does at an event, and what the story says of it. */
const FAULTS: Readonly<Record<string, [event: "request" | "attempt" | "answer", code: string, told: string]>> = {
  "says nothing to its parent": ["request", "process.send(null);", "it threw"],
  "answers by a tool call of nothing": ["request", "return answer({ parts: [{ type: 'tool-call' }] });", "parts.0.id"],
  "answers by a picture of nothing": ["request", "return answer({ parts: [{ type: 'image' }] });", "parts.0.source"],
  "answers by citations that are none": [
    "request",
    "return answer({ parts: [{ type: 'text', text: 'x', citations: 7 }] });",
    "citations",
  ],
  "counts tokens that are none": ["request", "return answer({ parts: [], usage: { input: 1 } });", "usage.input"],
  "ends for no reason": ["request", "return answer({ parts: [], finish: { reason: 'x' } });", "finish.reason"],
  "answers 30 MB": ["request", "return answer({ text: 'x'.repeat(30_000_000) });", "larger"],
  "makes a request of 60 MB": ["request", "return change({ body: { ...body, user: 'x'.repeat(6e7) } });", "larger"],
  "makes a deep request": ["request", `${deep} return change({ body: { ...body, metadata: deep } });`, "deeper"],
  "makes a stream of an attempt": ["attempt", "return change({ body: { ...body, stream: true } });", "stream"],
  "asks for more choices at an attempt": ["attempt", "return change({ body: { ...body, n: 3 } });", "choices"],
  "makes nonsense of an answer": ["answer", "return change({ body: { nonsense: true } });", "cannot be read as chat"],
};

const GOOD: Readonly<Record<string, [event: "request", code: string]>> = {
  "asks for what every object has": [
    "request",
    "return pass({ note: { status: (await ask('constructor', it)).status } });",
  ],
  "asks for a form": ["request", "return pass({ note: { status: (await ask('transcriptions', it)).status } });"],
  "asks nonsense": [
    "request",
    "return pass({ note: { status: (await ask('chat', { ...it, messages: 7 })).status } });",
  ],
  "asks 100 times at once": [
    "request",
    `let refused = 0;
     const answers = await Promise.all(Array.from({ length: 100 }, async () => {
       const { status } = await ask("chat", { ...it, model: "held" });
       if (status === 429 && ++refused === ${100 - MOST_ASKS}) writeFileSync(import.meta.dir + "/refused", "");
       return status;
     }));
     return pass({ note: { asked: answers.filter((status) => status === 200).length } });`,
  ],
  "adds what every object has": ["request", `return change({ body: { ...body, constructor: 1 } });`],
};

const MODULE = `
import { writeFileSync } from "node:fs";
import { answer, change, defineHook, pass } from "signalbox/hooks";
const codes = {
  ${Object.entries({ ...FAULTS, ...GOOD })
    .map(([name, [event, code]]) => `"${name} ${event}": async ({ body, ask, it }) => { ${code} }`)
    .join(",\n")}
};
const it = { model: "others", messages: [{ role: "user", content: "hi" }] };
const at = (name) => ({ body, ask, info }) => codes[info.model + " " + name]?.({ body, ask, it });
export default defineHook({ request: at("request"), attempt: at("attempt"), answer: at("answer") });
`;

/** Starts a process that only a signal ends, tells its number, and loops. */
const PARENT = `
import { writeFileSync } from "node:fs";
import { defineHook } from "signalbox/hooks";
export default defineHook({
  request() {
    const child = Bun.spawn(["sleep", "10000"], { stdio: ["ignore", "ignore", "ignore"] });
    writeFileSync(import.meta.dir + "/pid", String(child.pid));
    for (;;);
  },
});`;

/** Loads when a file is there. */
const SLOW = `
import { existsSync } from "node:fs";
import { answer, defineHook } from "signalbox/hooks";
while (!existsSync(import.meta.dir + "/go")) await Bun.sleep(5);
export default defineHook({ request: () => answer({ text: "first" }) });`;

const QUICK = `
import { answer, defineHook } from "signalbox/hooks";
export default defineHook({ request: () => answer({ text: "second" }) });`;

const ofTable = [...Object.keys(FAULTS), ...Object.keys(GOOD)];
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [
        { name: "one", url: backend.url, models: ["others", "held", "stream", "parent", "edited", ...ofTable] },
      ],
      health_checks: { enabled: false },
      hooks: [
        { name: "table", module: "./table.ts", timeout: "20s", match: { model: ofTable } },
        { name: "stream", module: "./stream.ts", timeout: "20s", match: { model: "stream" } },
        { name: "parent", module: "./parent.ts", timeout: "1s", match: { model: "parent" } },
        { name: "edited", module: "./edited.ts", timeout: "20s", match: { model: "edited" } },
      ],
    },
    files: {
      "table.ts": MODULE,
      "stream.ts": `import { change, defineHook } from "signalbox/hooks";
export default defineHook({ answer: () => change({ body: { nonsense: true } }) });`,
      "parent.ts": PARENT,
      "edited.ts": SLOW,
    },
  });
});

interface Step {
  kind: string;
  detail?: string;
  note?: Record<string, number>;
}

async function told(model: string) {
  const response = await gateway.chat({ model });
  await response.text();
  const id = response.headers.get("x-signalbox-request-id");
  const { steps } = (await (await gateway.fetch(`/admin/requests/${id}`)).json()) as { steps: Step[] };
  const hooked = steps.filter(({ kind }) => kind === "hook");
  const notes = Object.assign({}, ...hooked.map(({ note }) => note)) as Record<string, number>;
  return { status: response.status, detail: hooked.map(({ detail = "" }) => detail).join(), notes };
}

test.each(Object.keys(FAULTS))("a module that %s fails its request, and is told why", async (model) => {
  const { status, detail } = await told(model);
  expect([status, detail]).toEqual([503, expect.stringContaining(FAULTS[model]?.[2] ?? "")]);
  expect((await gateway.chat({ model: "others" })).status).toBe(200);
});

test("no backend is blamed for what a module has made of an attempt", async () => {
  const { backends } = (await (await gateway.fetch("/admin/backends")).json()) as { backends: BackendStatus[] };
  expect(backends.map(({ failed_requests }) => failed_requests)).toEqual([0]);
});

test.each([
  ["asks for what every object has", { status: 400 }],
  ["asks for a form", { status: 400 }],
  ["asks nonsense", { status: 400 }],
  ["adds what every object has", {}],
])("a module that %s harms no request", async (model, notes) => {
  expect(await told(model)).toMatchObject({ status: 200, notes });
});

test("a module that asks 100 times at once has 16 questions under way", async () => {
  expect(await told("asks 100 times at once")).toMatchObject({ status: 200, notes: { asked: MOST_ASKS } });
});

test("a stream whose hook makes nonsense of it ends with an error", async () => {
  const response = await gateway.chat({ model: "stream", stream: true });
  const text = await response.text();
  expect(text).toContain("hook_failed");
  expect(text).not.toContain("One.");
});

test("what a module has started ends with its process", async () => {
  expect((await gateway.chat({ model: "parent" })).status).toBe(503);
  const pid = Number(readFileSync(join(gateway.folder, "pid"), "utf8"));
  await waitFor("the child is gone", () => !isAlive(pid));
});

test("a request that waits for a module to load is not lost when the module is edited", async () => {
  const asked = gateway.chat({ model: "edited" });
  await waitFor("the request has come", async () => {
    const { requests } = (await (await gateway.fetch("/admin/requests?model=edited")).json()) as {
      requests: unknown[];
    };
    return requests.length > 0;
  });
  writeFileSync(join(gateway.folder, "edited.ts"), QUICK);
  await waitFor("the edited module is loaded", () => gateway.printed.stderr.includes("was loaded again"));
  writeFileSync(join(gateway.folder, "go"), "");
  expect(await (await asked).text()).toContain("first");
  expect(await (await gateway.chat({ model: "edited" })).text()).toContain("second");
});
