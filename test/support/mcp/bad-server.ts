// An MCP server for tests that behaves as its arguments say, run as a program of its own: "ignore-term", "ignore-end",
// "fork" (a child that ignores signals), "silent", "garbage", "flood",
// "die-on-call", "changing", "print-environment", ...

import { readSync, writeSync } from "node:fs";

const traits = new Set(process.argv.slice(2));

if (traits.has("ignore-term"))
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => undefined);

function print(text: string): void {
  let bytes = Buffer.from(text);
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(1, bytes));
    } catch (error) {
      if ((error as { code?: string }).code !== "EAGAIN") throw error;
      Bun.sleepSync(1);
    }
  }
}

function say(message: object): void {
  print(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

if (traits.has("fork")) {
  // In the same group, with our pipes, deaf to everything that can be ignored.
  const grandchild = Bun.spawn(["sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1000; done"], {
    stdio: ["inherit", "inherit", "inherit"],
  });
  process.stderr.write(`grandchild ${grandchild.pid}\n`);
}
if (traits.has("tell-pids")) process.stderr.write(`pids ${process.pid}\n`);
if (traits.has("fail-at-once")) {
  process.stderr.write("no licence found: sekret-in-environment\n");
  process.exit(3);
}
if (traits.has("garbage")) {
  print('Welcome to the server!\n\n{"half": \n[1]\n"text"\n{"id":1}\n');
  print(`${"x".repeat(100_000)}\n`);
}
if (traits.has("odd-messages")) {
  const odd: unknown[] = [
    { id: { a: 1 }, method: "x" },
    { method: 5 },
    { id: 1, error: null },
    { id: 99, result: {} },
    {},
  ];
  odd.push(
    { id: 0, result: null },
    { method: "notifications/progress", params: null },
    { id: null, method: "roots/list" },
  );
  odd.push(
    { method: "notifications/cancelled" },
    { id: "a", method: "roots/list", params: 7 },
    { id: -0.5, result: "x" },
  );
  odd.push(
    { method: "notifications/tools/list_changed", params: "x" },
    { id: [], result: {} },
    { method: "__proto__", id: 1 },
  );
  for (const message of odd) print(`${JSON.stringify({ jsonrpc: "2.0", ...(message as object) })}\n`);
}
if (traits.has("huge-line")) print(`${"y".repeat(33 * 1024 * 1024)}\n`);

const TOOLS = [
  {
    name: "echo",
    description: "Says it again.",
    inputSchema: { type: "object", properties: { text: { type: "string" } } },
  },
  { name: "die", inputSchema: { type: "object" } },
  { name: "hang", inputSchema: { type: "object" } },
  { name: "environment", inputSchema: { type: "object" } },
  { name: "change", inputSchema: { type: "object" } },
  { name: "ask", inputSchema: { type: "object" } },
  { name: "flood", inputSchema: { type: "object", properties: { count: { type: "number" } } } },
];
let extraTools: object[] = [];
let listFails = false;
const cancelled: unknown[] = [];
const answers = new Map<unknown, (message: Record<string, unknown>) => void>();

interface Incoming {
  id?: unknown;
  method?: string;
  params?: Record<string, unknown> & { name?: string; arguments?: Record<string, unknown> };
}

function answer(message: Incoming, result: object): void {
  say({ id: message.id, result });
}

const text = (value: string) => ({ content: [{ type: "text", text: value }] });

async function ask(method: string, params: object): Promise<Record<string, unknown>> {
  const id = `from-server-${answers.size}`;
  say({ id, method, params });
  return new Promise((resolve) => answers.set(id, resolve));
}

const CALLS: Record<string, (message: Incoming, args: Record<string, unknown>) => unknown> = {
  echo: (message, args) => answer(message, text(String(args.text))),
  die: () => process.exit(7),
  hang: () => undefined,
  environment: (message) => answer(message, text(JSON.stringify(process.env))),
  cancelled: (message) => answer(message, text(JSON.stringify(cancelled))),
  change(message, args) {
    extraTools = (args.tools as object[] | undefined) ?? [];
    listFails = args.listFails === true;
    for (let count = 0; count < 20; count++) say({ method: "notifications/tools/list_changed" });
    answer(message, text("changed"));
  },
  async ask(message) {
    const roots = await ask("roots/list", {});
    const sampling = await ask("sampling/createMessage", { messages: [], maxTokens: 1 });
    const elicitation = await ask("elicitation/create", {
      message: "?",
      requestedSchema: { type: "object", properties: {} },
    });
    answer(message, text(JSON.stringify([roots, sampling, elicitation].map(({ result, error }) => result ?? error))));
  },
  flood(message, args) {
    const count = Number(args.count ?? 1_000);
    for (let index = 0; index < count; index++)
      say({ method: "notifications/message", params: { level: "info", data: index } });
    answer(message, text(`${count} sent`));
  },
};

const METHODS: Record<string, (message: Incoming) => unknown> = {
  initialize: (message) =>
    answer(message, {
      protocolVersion: message.params?.protocolVersion,
      capabilities: traits.has("no-tools") ? {} : { tools: { listChanged: true } },
      serverInfo: {
        name: "bad-server",
        version: "1.0.0",
        ...(traits.has("tell-client") && { client: message.params?.clientInfo }),
      },
    }),
  ping: (message) => answer(message, {}),
  "notifications/cancelled": (message) => cancelled.push(message.params),
  "tools/list": (message) => {
    if (listFails) say({ id: message.id, error: { code: -32603, message: "the list is broken" } });
    else if (traits.has("endless-pages"))
      answer(message, { tools: TOOLS, nextCursor: String(Number(message.params?.cursor ?? 0) + 1) });
    else answer(message, { tools: [...TOOLS, ...extraTools] });
  },
  "tools/call": (message) => {
    const { name = "", arguments: args = {} } = message.params ?? {};
    const call = CALLS[name];
    if (call === undefined) answer(message, { ...text(`no tool ${name}`), isError: true });
    else return call(message, args);
  },
  "test/big": (message) => answer(message, { text: "z".repeat(Number(message.params?.length)) }),
};

async function receive(line: string): Promise<void> {
  const message = JSON.parse(line) as Incoming;
  if (message.method === undefined) {
    answers.get(message.id)?.(message as Record<string, unknown>);
    return;
  }
  if (traits.has("silent")) return;
  const method = METHODS[message.method];
  if (method !== undefined) await method(message);
  else if (message.id !== undefined) say({ id: message.id, error: { code: -32601, message: `no ${message.method}` } });
}

if (traits.has("never-read")) await new Promise(() => undefined);
let rest = "";
const decoder = new TextDecoder();
if (traits.has("slow-reader")) {
  const piece = new Uint8Array(64 * 1024);
  for (;;) {
    await Bun.sleep(5);
    let length = 0;
    try {
      length = readSync(0, piece);
    } catch (error) {
      if ((error as { code?: string }).code !== "EAGAIN") throw error;
      continue;
    }
    if (length === 0) break;
    await take(piece.subarray(0, length));
  }
} else for await (const bytes of Bun.stdin.stream()) await take(bytes);

async function take(bytes: Uint8Array): Promise<void> {
  rest += decoder.decode(bytes, { stream: true });
  const lines = rest.split("\n");
  rest = lines.pop() ?? "";
  // Without waiting: a call that asks us something must not keep its answer from being read.
  for (const line of lines) if (line !== "") void receive(line);
}

if (traits.has("ignore-end")) await new Promise(() => setInterval(() => undefined, 1_000_000));
