// The protocol as raw lines: framing, ids, order, refusals; the validator looks at all that was said.

import { expect, test } from "bun:test";
import { acpBeds, add, plainTurn } from "../../test/support/acp-bed.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { RPC } from "./rpc-error.ts";

const open = acpBeds();

test("a prompt from the first line to the last", async () => {
  const bed = open();
  const initialized = await bed.initialize();
  expect(initialized).toMatchObject({
    protocolVersion: 1,
    agentCapabilities: {
      loadSession: true,
      image: true,
      promptCapabilities: { image: true },
      mcpCapabilities: { acp: true },
    },
    agentInfo: { name: "signalbox" },
    authMethods: [],
  });
  const session = await bed.result("session/new", { cwd: "/project", mcpServers: [] });
  expect(session).toMatchObject({
    mode: "code",
    historyLength: 0,
    modes: { currentModeId: "code" },
    configOptions: [
      { id: "mode" },
      { id: "model", currentValue: "first" },
      { id: "thought_level", currentValue: "default" },
    ],
  });
  expect(Date.parse(session.createdAt as string)).toBeGreaterThan(0);
  const { result } = await bed.prompt(session.sessionId as string, "Say hello\nplease");
  expect(result).toEqual({ stopReason: "end_turn", usage: { totalTokens: 12, inputTokens: 10, outputTokens: 2 } });
  const [title, text] = bed.updates();
  expect(title?.update).toMatchObject({ sessionUpdate: "session_info_update", title: "Say hello" });
  expect(text).toMatchObject({
    update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "Hello" } },
    content: [{ type: "text", text: "Hello" }],
  });
});

test("nothing works before initialize, and requests right behind it do", async () => {
  const bed = open();
  expect((await bed.refusal("session/new")).code).toBe(RPC.notInitialized);
  expect((await bed.refusal("nothing")).code).toBe(RPC.notInitialized);
  expect(await bed.refusal("initialize", { protocolVersion: "1" })).toMatchObject({
    code: -32602,
    data: { reason: "invalid_params" },
  });
  expect((await bed.refusal("initialize")).message).toBe("protocolVersion is missing: send 1.");
  expect((await bed.refusal("session/new")).code).toBe(RPC.notInitialized);
  const first = bed.begin("a", "initialize", { protocolVersion: 7 });
  const second = bed.begin("b", "session/new");
  expect((await first).result?.protocolVersion).toBe(1);
  expect((await second).result?.mode).toBe("code");
  expect(await bed.initialize({ terminal: true })).toEqual((await first).result as never);
});

test("ids of any type come back as they were", async () => {
  const bed = open();
  await bed.initialize();
  for (const id of [0, null, "", "x", "\ud800", -1, 1.5, true, [1], { a: 1 }]) {
    expect((await bed.begin(id, "authenticate", { method: "any", token: "sekret" })).id).toEqual(id as never);
  }
  const long = "12345678901234567890";
  const written: string[] = [];
  const raw = open({ write: (line) => void written.push(new TextDecoder().decode(line)) });
  await raw.initialize();
  // Also where a message of another protocol stands in it, as in mcp/message.
  for (const params of ['{"id":1}', '{"jsonrpc":"2.0","id":1}', '{"message":{"jsonrpc":"2.0","id":1.5}}']) {
    const line = `{"jsonrpc":"2.0","id":${long},"method":"logout","params":${params}}`;
    raw.traffic.push({ from: "client", message: JSON.parse(line) });
    await raw.raw(`${line}\n`);
    expect(written.at(-1)).toContain(`"id":${long},"result":{}`);
  }
});

test("lines that are no messages", async () => {
  const bed = open();
  await bed.raw("nonsense\n[]\n[{}]\n1\n\n  \r\n{}\n");
  await bed.raw(new Uint8Array([0x22, 0xff, 0x22, 0x0a]));
  const codes = bed.answersTo(null).map(({ error }) => error?.code);
  expect(codes).toEqual([-32700, -32600, -32600, -32600, -32600, -32700]);
  const { error } = await bed.begin(1, "x").then(() => bed.answersTo(1)[0] as never as { error: { code: number } });
  expect(error.code).toBe(RPC.notInitialized);
  bed.send({ id: 2, method: "initialize", params: { protocolVersion: 1 } });
  expect(bed.answersTo(2)[0]?.error?.code).toBe(-32600);
  bed.send({ jsonrpc: "2.0", id: 3, method: 4 });
  expect(bed.answersTo(3)[0]?.error?.code).toBe(-32600);
});

test("a large line is parsed in pieces, in order; one beyond 32 MiB is refused and skipped", async () => {
  const bed = open();
  await bed.initialize();
  const large = { jsonrpc: "2.0", id: 50, method: "authenticate", params: { text: "x".repeat(1024 * 1024) } };
  bed.traffic.push({ from: "client", message: large });
  const text = `${JSON.stringify(large)}\n`;
  const busy = bed.raw(text);
  expect(busy).toBeInstanceOf(Promise);
  bed.send({ jsonrpc: "2.0", id: 51, method: "authenticate" });
  await busy;
  await waitFor("both are answered", () => bed.answersTo(51).length > 0);
  const ids = bed.traffic.flatMap(({ from, message }) => (from === "agent" ? [(message as { id: number }).id] : []));
  expect(ids.slice(-2)).toEqual([50, 51]);
  const huge = new Uint8Array(33 * 1024 * 1024).fill(120);
  await bed.raw(huge);
  await bed.raw("\n");
  expect(bed.answersTo(null).at(-1)?.error).toMatchObject({ code: -32600, data: { reason: "message_too_large" } });
  expect(await bed.result("authenticate")).toEqual({});
});

test("unknown methods, extensions and notifications", async () => {
  const bed = open();
  await bed.initialize();
  for (const method of ["nothing", "_vendor/thing", "session/fork", "toString", "__proto__"]) {
    expect((await bed.refusal(method)).code).toBe(-32601);
  }
  bed.notify("nothing");
  bed.notify("_vendor/thing");
  bed.notify("session/new");
  bed.notify("$/cancel_request", { requestId: 99 });
  bed.send({ jsonrpc: "2.0", id: 77, result: {} }); // an answer that nobody waits for
  expect(bed.told).toEqual([]);
  expect((await bed.refusal("session/new", ["x"] as never)).message).toBe("params must be an object.");
});

test("wrong params are refused with the field and the fix", async () => {
  const bed = open();
  await bed.initialize();
  const sessionId = await bed.newSession();
  const prompt = [{ type: "text", text: "a" }];
  const cases: [string, object, string][] = [
    ["session/new", { cwd: "project" }, "cwd must be an absolute path."],
    ["session/new", { cwd: 1 }, "cwd must be a string."],
    ["session/new", { additionalDirectories: "/a" }, "additionalDirectories must be a list."],
    ["session/new", { additionalDirectories: ["/a", "b"] }, "additionalDirectories[1] must be an absolute path."],
    [
      "session/new",
      { additionalDirectories: ["/".repeat(8_193)] },
      "additionalDirectories may have 8192 bytes together.",
    ],
    ["session/new", { mode: "fast" }, "mode must be code, architect or ask"],
    ["session/new", { mcpServers: {} }, "mcpServers must be a list."],
    ["session/new", { mcpServers: [{ name: "a" }] }, "mcpServers[0].command is missing"],
    ["session/new", { mcpServers: [{ type: "http", name: "a", url: "x" }] }, "mcpServers[0].url must be a URL"],
    [
      "session/new",
      { mcpServers: [{ name: "a", command: "b", env: [{ name: "A" }] }] },
      "mcpServers[0].env[0] must be",
    ],
    ["session/load", {}, "sessionId is missing"],
    ["session/prompt", { sessionId }, "prompt is missing"],
    ["session/prompt", { sessionId, prompt: "a" }, "prompt must be a list"],
    ["session/prompt", { sessionId, content: [1] }, "content[0] must be a content block"],
    ["session/prompt", { sessionId, prompt, temperature: "hot" }, "temperature must be a number."],
    ["session/prompt", { sessionId, prompt, maxTokens: 0.5 }, "maxTokens must be a whole number above 0."],
    ["session/prompt", { sessionId, prompt, stream: 1 }, "stream must be true or false."],
    ["session/set_mode", { sessionId }, "modeId is missing"],
    ["session/set_mode", { sessionId, modeId: "fast" }, "modeId must be code, architect or ask"],
    ["session/set_config_option", { sessionId, configId: "speed", value: "1" }, "configId must be mode, model or"],
    [
      "session/set_config_option",
      { sessionId, configId: "model", value: "third" },
      "value of model must be one of first, second",
    ],
    ["session/set_config_option", { sessionId, configId: "model", value: true }, "value must be a string."],
    ["session/list", { cursor: "?" }, "cursor must be"],
  ];
  for (const [method, params, message] of cases) {
    const { code, message: said } = await bed.refusal(method, params);
    expect([code, said]).toEqual([-32602, expect.stringContaining(message)]);
  }
});

test("sessions that are not there, and paths in place of ids", async () => {
  const bed = open();
  await bed.initialize();
  for (const sessionId of ["../../etc/passwd", "", crypto.randomUUID()]) {
    for (const method of ["load", "resume", "close", "delete", "prompt", "set_mode", "cancel"]) {
      const error = await bed.refusal(`session/${method}`, { sessionId, modeId: "ask", prompt: [{ text: "a" }] });
      expect(error).toMatchObject({ code: -32001, data: { reason: "session_not_found", sessionId } });
    }
  }
});

test("one prompt at a time in a session, and the others in parallel", async () => {
  const gates = new Map<string, () => void>();
  const bed = open({
    async runTurn(parts) {
      await new Promise<void>((resolve) => gates.set(JSON.stringify(parts.prompt), resolve));
      return await plainTurn(parts);
    },
  });
  await bed.initialize();
  const [one, other] = [await bed.newSession(), await bed.newSession()];
  const first = bed.begin("p1", "session/prompt", { sessionId: one, prompt: [{ text: "1" }] });
  const busy = await bed.refusal("session/prompt", { sessionId: one, prompt: [{ text: "2" }] });
  expect(busy).toMatchObject({ code: -32600, data: { reason: "session_busy", sessionId: one } });
  expect((await bed.refusal("session/load", { sessionId: one, cwd: "/", mcpServers: [] })).code).toBe(-32600);
  const second = bed.begin("p2", "session/prompt", { sessionId: other, prompt: [{ text: "3" }] });
  await waitFor("both run", () => gates.size === 2);
  gates.get('[{"type":"text","text":"3"}]')?.();
  expect((await second).result?.stopReason).toBe("end_turn");
  gates.get('[{"type":"text","text":"1"}]')?.();
  expect((await first).result?.stopReason).toBe("end_turn");
});

test("cancelling right behind a prompt, by notification, by request and by $/cancel_request", async () => {
  const bed = open({
    async runTurn(parts) {
      await new Promise((_, reject) => parts.signal.addEventListener("abort", () => reject(parts.signal.reason)));
      return { stopReason: "end_turn" };
    },
  });
  await bed.initialize();
  const sessionId = await bed.newSession();
  const ways = [
    () => bed.notify("session/cancel", { sessionId }),
    () => void bed.begin("c", "session/cancel", { sessionId }),
    () => bed.notify("$/cancel_request", { requestId: 0 }),
    () => void bed.begin("r", "$/cancel_request", { requestId: 0 }),
  ];
  for (const cancel of ways) {
    const prompt = bed.begin(0, "session/prompt", { sessionId, prompt: [{ text: "1" }] });
    cancel();
    expect((await prompt).result).toEqual({ stopReason: "cancelled" });
  }
  for (const id of ["c", "r"]) expect(bed.answersTo(id)).toMatchObject([{ result: {} }]);
});

test("a turn that does not end by itself is left behind, and the session goes on", async () => {
  let hangs = true;
  const gate = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const bed = open({
    async runTurn(parts) {
      if (!hangs) return await plainTurn(parts, "back");
      add(parts, { role: "user", parts: parts.prompt });
      const call = {
        toolCallId: "t",
        title: "Wait",
        kind: "other",
        status: "pending",
        content: [],
        locations: [],
      } as const;
      parts.editor.tell({ type: "tool-call", call: { ...call, content: [], locations: [] } });
      await gate.promise;
      parts.editor.tell({ type: "text", text: "too late" });
      add(parts, { role: "assistant", parts: [{ type: "text", text: "too late" }] });
      over.resolve();
      return { stopReason: "end_turn" };
    },
  });
  await bed.initialize();
  const sessionId = await bed.newSession();
  const prompt = bed.begin(0, "session/prompt", { sessionId, prompt: [{ text: "1" }] });
  await waitFor("the call is told", () => bed.kinds().includes("tool_call"));
  bed.notify("session/cancel", { sessionId });
  expect((await prompt).result?.stopReason).toBe("cancelled");
  expect(bed.updates().at(-1)?.update).toMatchObject({ sessionUpdate: "tool_call_update", status: "failed" });
  hangs = false;
  expect((await bed.prompt(sessionId)).result?.stopReason).toBe("end_turn");
  gate.resolve();
  await over.promise;
  expect(JSON.stringify(bed.traffic)).not.toContain("too late");
  expect((await bed.result("session/load", { sessionId })).historyLength).toBe(3);
});

test("failures of backends are errors in the gateway's words; bugs are not told", async () => {
  let thrown: unknown;
  const bed = open({
    async runTurn() {
      throw thrown;
    },
  });
  await bed.initialize();
  const sessionId = await bed.newSession();
  thrown = new GatewayError(ERRORS.backendTimeout, "The backend took too long.", { details: { backend: "a" } });
  expect((await bed.prompt(sessionId)).error).toEqual({
    code: -32603,
    message: "The backend took too long.",
    data: {
      reason: "backend_timeout",
      status: 504,
      type: "backend_timeout",
      code: 504,
      details: { backend: "a" },
      sessionId,
    },
  });
  thrown = new TypeError("sekret is undefined");
  expect((await bed.prompt(sessionId)).error).toMatchObject({
    code: -32603,
    data: { reason: "internal_error", sessionId },
  });
  expect(JSON.stringify(bed.traffic)).not.toContain("sekret");
  expect(bed.logged.join("")).toContain("a turn has failed");
});

test("what was asked before the end is answered, also where the last line has no end; then nothing is", async () => {
  const bed = open();
  await bed.initialize();
  const first = bed.begin("n", "session/new");
  const last = { jsonrpc: "2.0", id: "l", method: "logout" };
  bed.traffic.push({ from: "client", message: last });
  await bed.raw(JSON.stringify(last));
  const stopped = bed.server.stop();
  expect((await first).result?.mode).toBe("code");
  await stopped;
  expect(bed.answersTo("l")).toMatchObject([{ result: {} }]);
  const { length } = bed.traffic;
  await bed.raw('{"jsonrpc":"2.0","id":9,"method":"logout"}\n');
  expect(bed.traffic).toHaveLength(length);
  expect(bed.server.stop()).toBe(stopped);
});

test("what no JSON can say, or no client takes, is left out of a call; text is told in pieces", async () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const long = "x".repeat(33 * 1024 * 1024);
  const bed = open({
    async runTurn(parts) {
      const call = {
        toolCallId: "a",
        title: "A",
        kind: "other",
        status: "pending",
        content: [],
        locations: [],
      } as const;
      parts.editor.tell({ type: "tool-call", call: { ...call, content: [], locations: [], rawOutput: circle } });
      const content = [{ type: "diff", path: "/a", newText: long } as const];
      parts.editor.tell({ type: "tool-call-change", toolCallId: "a", change: { status: "completed", content } });
      return await plainTurn(parts, long);
    },
  });
  await bed.initialize();
  expect((await bed.prompt(await bed.newSession())).result?.stopReason).toBe("end_turn");
  const told = bed.updates().flatMap(({ content }) => content.map((block) => block.text as string));
  expect(told.join("") === long).toBe(true);
  expect(bed.kinds().slice(0, 4)).toEqual([
    "session_info_update",
    "tool_call",
    "tool_call_update",
    "agent_message_chunk",
  ]);
  expect(bed.logged.filter((line) => line.includes("was left out"))).toHaveLength(2);
});

test("a thousand prompts of one process leave nothing behind but the conversation", async () => {
  const bed = open({ runTurn: async () => ({ stopReason: "end_turn" }) });
  await bed.initialize();
  const sessionId = await bed.newSession();
  for (let count = 0; count < 1_000; count++) await bed.prompt(sessionId);
  const { result } = await bed.call("session/resume", { sessionId });
  expect(result).toMatchObject({ historyLength: 0 });
});
