// The bridge's methods: both forms, both directions, refusals.

import { afterEach, expect, test } from "bun:test";
import { AcpBed } from "../../test/support/acp-bed.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { BridgeError, type McpBridgeParts } from "../mcp/servers.ts";

let bridgeParts: McpBridgeParts | undefined;
const passed: object[] = [];
const folders: unknown[] = [];
let isClosed = false;

/** Answers each request with its method's name; "fail" with an error. */
function open(): AcpBed {
  return new AcpBed({
    createMcpBridge(parts) {
      bridgeParts = parts;
      return {
        async connect(id, cwd) {
          folders.push(cwd);
          if (id === "no__good") throw new BridgeError(-32602, "id is not valid");
          if (id !== "tools") throw new BridgeError(-32001, "there is no such server");
          return { connectionId: "c1" };
        },
        async message(connectionId, message, signal) {
          if (connectionId !== "c1") throw new BridgeError(-32001, "there is no such connection");
          passed.push(message);
          const { id, method } = message as JsonObject;
          if (method === "hang")
            await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
          if (id === undefined) return undefined;
          return method === "fail"
            ? { jsonrpc: "2.0", id, error: { code: -1, message: "no" } }
            : { jsonrpc: "2.0", id, result: { method } };
        },
        async disconnect() {},
        async close() {
          isClosed = true;
        },
      };
    },
  });
}

const bed = open();
afterEach(() => expect(bed.complaints()).toEqual([]));

test("connect, by any of the names of the id", async () => {
  await bed.initialize();
  for (const name of ["id", "acpId", "serverId"]) {
    expect(await bed.result("mcp/connect", { [name]: "tools" })).toEqual({ connectionId: "c1" });
  }
  expect((await bed.refusal("mcp/connect", {})).message).toStartWith("id is missing");
  expect(await bed.refusal("mcp/connect", { id: "no__good" })).toMatchObject({
    code: -32602,
    message: "id is not valid",
  });
  expect((await bed.refusal("mcp/connect", { id: "other" })).code).toBe(-32001);
  expect(bridgeParts).toMatchObject({ buffer: 64 });
});

test("what the configuration says counts from the next connection on", async () => {
  expect(bridgeParts?.options()).toMatchObject({ allowed: [], maxConnections: 5 });
  bed.settings.mcp = { ...bed.settings.mcp, allowedServers: ["tools"], maxConnections: 7 };
  expect(bridgeParts?.options()).toMatchObject({ allowed: ["tools"], maxConnections: 7 });
});

test("a server begins in the folder of the session that is named, else in that of the process", async () => {
  folders.length = 0;
  const sessionId = await bed.newSession({ cwd: "/elsewhere" });
  await bed.result("mcp/connect", { id: "tools", sessionId });
  await bed.result("mcp/connect", { id: "tools" });
  expect(folders).toEqual(["/elsewhere", "/project"]);
  expect((await bed.refusal("mcp/connect", { id: "tools", sessionId: "x" })).data.reason).toBe("session_not_found");
});

test("messages, whole and flattened", async () => {
  const send = (params: object) => bed.result("mcp/message", { connectionId: "c1", ...params });
  expect(await send({ message: { id: 7, method: "tools/list" } })).toEqual({
    message: { jsonrpc: "2.0", id: 7, result: { method: "tools/list" } },
    result: { method: "tools/list" },
  });
  expect(await send({ method: "fail", id: "x" })).toMatchObject({ message: { id: "x" }, error: { code: -1 } });
  expect(await send({ method: "ping", params: { a: 1 } })).toMatchObject({ result: { method: "ping" } });
  expect(passed.at(-1)).toMatchObject({ jsonrpc: "2.0", id: expect.any(String), method: "ping", params: { a: 1 } });
  expect(await send({ message: { jsonrpc: "2.0", method: "notifications/initialized" } })).toEqual({});
  expect((await bed.refusal("mcp/message", { connectionId: "c1" })).message).toStartWith("message is missing");
  expect((await bed.refusal("mcp/message", { connectionId: "c2", method: "a" })).code).toBe(-32001);
  expect(await bed.result("mcp/disconnect", { connectionId: "c1" })).toEqual({});
});

test("notifications: the server's, and a request in one of the client's", async () => {
  const seen = () =>
    bed.traffic.flatMap(({ from, message }) =>
      from === "agent" && isObject(message) && message.method === "mcp/message" ? [message.params] : [],
    );
  await bridgeParts?.fromServer("c1", { jsonrpc: "2.0", method: "notifications/tools/list_changed" });
  bed.notify("mcp/message", { connectionId: "c1", message: { jsonrpc: "2.0", id: 1, method: "ping" } });
  await waitFor("both are told", () => seen().length === 2);
  expect(seen()).toEqual([
    { connectionId: "c1", message: { jsonrpc: "2.0", method: "notifications/tools/list_changed" } },
    { connectionId: "c1", message: { jsonrpc: "2.0", id: 1, result: { method: "ping" } } },
  ]);
});

test("a message is taken back with $/cancel_request; the end closes every connection", async () => {
  const hanging = bed.begin("h", "mcp/message", { connectionId: "c1", method: "hang" });
  await waitFor("it hangs", () => passed.some((message) => (message as JsonObject).method === "hang"));
  bed.notify("$/cancel_request", { requestId: "h" });
  expect((await hanging).error).toMatchObject({ code: -32800, data: { reason: "request_cancelled" } });
  await bed.server.stop();
  expect(isClosed).toBe(true);
});
