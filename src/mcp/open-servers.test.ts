// MCP servers of a session that behave badly: each is bounded, its trouble is told, and the others work.

import { afterEach, describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type OpenOptions, openServers } from "../../test/support/mcp/open.ts";
import { groupMembers } from "../../test/support/process-groups.ts";
import { waitFor, within } from "../../test/support/wait-for.ts";
import type { McpServerSpec } from "./servers.ts";

const SERVER = join(import.meta.dir, "../../test/support/mcp/bad-server.ts");
const opened: ReturnType<typeof openServers>[] = [];
const web: Bun.Server<undefined>[] = [];

afterEach(async () => {
  const pids = opened.flatMap(({ log }) => log.flatMap((line) => /pids (\d+)/.exec(line)?.[1] ?? []));
  await Promise.all(opened.splice(0).map(({ close }) => close()));
  for (const pid of pids) expect(groupMembers(Number(pid))).toEqual([]);
  await Promise.all(web.splice(0).map((server) => server.stop(true)));
});

function bad(name: string, ...traits: string[]): McpServerSpec {
  return {
    type: "stdio",
    name,
    command: process.execPath,
    args: [SERVER, "tell-pids", ...traits],
    env: { SECRET: "sekret-value" },
  };
}

async function open(specs: McpServerSpec[], options?: OpenOptions) {
  const servers = openServers(specs, options);
  opened.push(servers);
  await servers.opened;
  return servers;
}

function serve(fetch: (request: Request) => Response | Promise<Response>): string {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch, idleTimeout: 0 });
  web.push(server);
  return `http://127.0.0.1:${server.port}/mcp`;
}

describe("opening", () => {
  test("goes on side by side, and each failure is told by its name", async () => {
    const startedMs = performance.now();
    const { names, troubles } = await open(
      [
        bad("good"),
        bad("silent", "silent"),
        bad("failing", "fail-at-once"),
        { type: "stdio", name: "missing", command: "no-such-command", args: [], env: {} },
        { type: "http", name: "odd", url: "file:///etc/passwd", headers: {} },
        { type: "http", name: "none", url: "nonsense", headers: {} },
        { type: "http", name: "header", url: "http://127.0.0.1:9/", headers: { "X-Ok": "sekret\r\nvalue" } },
        { type: "http", name: "refused", url: "http://127.0.0.1:9/mcp", headers: {} },
        { type: "sse", name: "refused", url: "http://127.0.0.1:9/sse", headers: {} },
        { type: "http", name: "mute", url: serve(() => new Promise(() => undefined)), headers: {} },
        { type: "sse", name: "mute", url: serve(() => new Promise(() => undefined)), headers: {} },
      ],
      { spawnTimeoutMs: 2_500 },
    );
    expect(performance.now() - startedMs).toBeLessThan(7_500); // three are silent: one after the other they take as long
    expect(names()).toContain("good__echo");
    expect(names().every((name) => name.startsWith("good__"))).toBe(true);
    expect(troubles.sort()).toEqual([
      expect.stringMatching(
        /^failing: MCP server failing: it exited with code 3 before it was ready: no licence found: sekret-in-environment$/,
      ),
      'header: MCP server header cannot be reached: the header "X-Ok" is not valid',
      "missing: MCP server missing cannot start: the command no-such-command was not found in PATH, or may not be run",
      "mute: MCP server mute-2: it was not ready within 2500 ms",
      "mute: MCP server mute: it was not ready within 2500 ms",
      "none: MCP server none cannot be reached: its url is no http or https address",
      "odd: MCP server odd cannot be reached: its url is no http or https address",
      expect.stringMatching(/^refused: MCP server refused-2: /),
      expect.stringMatching(/^refused: MCP server refused: /),
      "silent: MCP server silent: it was not ready within 2500 ms",
    ]);
    expect(troubles.join("\n")).not.toContain("sekret\r");
  });

  test("ends when the session does", async () => {
    const servers = openServers([bad("silent", "silent")]);
    opened.push(servers);
    await waitFor("it runs", () => servers.log.length > 0);
    await within("it is closed", servers.close());
    await within("opening is over", servers.opened);
    expect(servers.troubles).toEqual([]);
  });

  test("of a server that has no tools", async () => {
    const { names, troubles } = await open([bad("plain", "no-tools")]);
    expect([names(), troubles]).toEqual([[], []]);
  });

  test("of one whose list has no end stops somewhere", async () => {
    const { names, log } = await open([bad("endless", "endless-pages")]);
    expect(names().length).toBe(7);
    expect(log.join("\n")).toContain(
      "MCP server endless: its list of tools has more than 32 pages; 7 tools are offered",
    );
  });
});

describe("calls", () => {
  test("two servers of one name are told apart", async () => {
    const { names, say } = await open([bad("twin"), bad("twin")]);
    expect(new Set(names()).size).toBe(14);
    expect(await say("twin__echo", { text: "one" })).toBe("one");
    expect(await say("twin-2__echo", { text: "two" })).toBe("two");
  });

  test("what is shown before is the true name", async () => {
    const { tools } = await open([bad("s")]);
    const context = {
      editor: undefined as never,
      cwd: "/",
      signal: new AbortController().signal,
      show: () => undefined,
    };
    expect(await tools()[0]?.preview({}, context)).toEqual({ title: "s: echo" });
  });

  test("the server gets the environment that is named, and its roots", async () => {
    const { say } = await open([bad("s")], { cwd: tmpdir(), directories: ["/usr/a b"] });
    expect(Object.keys(JSON.parse(await say("s__environment"))).sort()).toEqual(
      ["HOME", "LANG", "PATH", "SECRET"].filter((name) => name === "SECRET" || process.env[name] !== undefined),
    );
    const [roots, sampling, elicitation] = JSON.parse(await say("s__ask"));
    expect(roots).toEqual({ roots: [{ uri: `file://${tmpdir()}` }, { uri: "file:///usr/a%20b" }] });
    expect(sampling).toMatchObject({ code: -32601 });
    expect(elicitation).toMatchObject({ code: -32601 });
  });

  test("cancelling frees whoever waits, and tells the server", async () => {
    const { say } = await open([bad("s")]);
    const abort = new AbortController();
    const call = say("s__hang", {}, abort.signal);
    await Bun.sleep(50);
    abort.abort(new Error("stop it"));
    await expect(within("it is free", call)).rejects.toThrow("stop it");
    await expect(say("s__hang", {}, AbortSignal.abort(new Error("too late")))).rejects.toThrow("too late");
    const { tools } = {
      tools: await say("s__change", { tools: [{ name: "cancelled", inputSchema: { type: "object" } }] }),
    };
    expect(tools).toBe("changed");
    expect(JSON.parse(await waitFor("the tool", () => say("s__cancelled").catch(() => undefined)))).toEqual([
      { requestId: expect.any(Number), reason: expect.any(String) },
    ]);
  });

  test("a server that dies is an outcome, and is started again when it is called", async () => {
    const { say, names, log } = await open([bad("s")]);
    for (let round = 0; round < 5; round++) {
      expect(await say("s__die")).toBe(
        "error: MCP server s exited with code 7 while it worked on this call. It is started again with the next call.",
      );
      expect(names()).toContain("s__echo");
      expect(await say("s__echo", { text: `round ${round}` })).toBe(`round ${round}`);
    }
    expect(log.filter((line) => line.includes("pids")).length).toBe(6);
  });

  test("one that dies with every call is given up", async () => {
    const { say, names, troubles } = await open([bad("s"), bad("other")]);
    for (let round = 0; round < 3; round++)
      expect(await say("s__die")).toContain("It is started again with the next call.");
    const die = names().includes("s__die") && say("s__die");
    expect(await die).toBe(
      "error: MCP server s exited with code 7 while it worked on this call. It is not started again.",
    );
    expect(names().some((name) => name.startsWith("s__"))).toBe(false);
    expect(troubles).toEqual(["s: MCP server s has ended too often; its tools are no longer offered"]);
    expect(await say("other__echo", { text: "fine" })).toBe("fine");
  });

  test("messages that are odd in themselves disturb nothing that comes behind them", async () => {
    const { say, troubles } = await open([bad("s", "odd-messages")]);
    expect(troubles).toEqual([]);
    expect(await say("s__echo", { text: "fine" })).toBe("fine");
  });

  test("a flood of notifications before an answer", async () => {
    const { say } = await open([bad("s")]);
    expect(await say("s__flood", { count: 50_000 })).toBe("50000 sent");
  });
});

describe("a list that changes", () => {
  const NEW = { name: "new tool", inputSchema: { type: "object" } };

  test("is read again, once for many words, and tools keep their names", async () => {
    const { say, names } = await open([bad("s", "tell-lists")]);
    const before = names();
    await say("s__change", { tools: [NEW, { name: 7 }, { name: "no-schema" }] });
    await waitFor("the new tools", () => names().length === before.length + 2);
    const odd = names().find((name) => name.startsWith("s__new_tool_")) as string;
    expect(odd).toMatch(/^s__new_tool_[0-9a-f]{8}$/);
    expect(names()).toEqual([...before, odd, "s__no-schema"]);
    expect(await say(odd)).toBe("error: no tool new tool");
    await say("s__change", { tools: [] });
    await waitFor("the old tools", () => names().length === before.length);
    await say("s__change", { tools: [NEW] });
    await waitFor("the same name again", () => names().includes(odd));
  });

  test("that cannot be read leaves the old one", async () => {
    const { say, names, log } = await open([bad("s")]);
    const before = names();
    await say("s__change", { tools: [NEW], listFails: true });
    await waitFor("a word about it", () =>
      log.find((line) => line.includes("its changed list of tools could not be read: ")),
    );
    expect(names()).toEqual(before);
  });
});

describe("servers over HTTP", () => {
  const TOOLS = [{ name: "echo", inputSchema: { type: "object" } }];

  /** Answers as JSON; `odd` may answer first. */
  function httpServer(
    odd: (
      message: { id?: unknown; method: string },
      request: Request,
    ) => Response | undefined | Promise<Response | undefined>,
  ) {
    let sessions = 0;
    const seen: Headers[] = [];
    const url = serve(async (request) => {
      if (request.method !== "POST") return new Response("no", { status: 405 });
      seen.push(request.headers);
      const message = (await request.json()) as { id?: unknown; method: string; params: { protocolVersion: string } };
      const answer = await odd(message, request);
      if (answer !== undefined) return answer;
      if (message.id === undefined) return new Response(null, { status: 202 });
      const result =
        message.method === "initialize"
          ? {
              protocolVersion: message.params.protocolVersion,
              capabilities: { tools: {} },
              serverInfo: { name: "x", version: "1" },
            }
          : message.method === "tools/list"
            ? { tools: TOOLS }
            : { content: [{ type: "text", text: request.headers.get("mcp-session-id") }] };
      const headers = message.method === "initialize" ? { "mcp-session-id": `session-${++sessions}` } : undefined;
      return Response.json({ jsonrpc: "2.0", id: message.id, result }, headers && { headers });
    });
    return { url, seen };
  }

  test("get the headers that are named, which no message repeats", async () => {
    const { url, seen } = httpServer(({ method }, request) =>
      method === "tools/call"
        ? new Response(`bad key ${request.headers.get("authorization")}`, { status: 403 })
        : undefined,
    );
    const { say, log, troubles } = await open([
      { type: "http", name: "s", url, headers: { Authorization: "Bearer sekret-token", "X-Two": "2" } },
    ]);
    expect(await say("s__echo")).toBe("error: MCP server s: Error POSTing to endpoint: bad key ***");
    expect(
      seen.every((headers) => headers.get("authorization") === "Bearer sekret-token" && headers.get("x-two") === "2"),
    ).toBe(true);
    expect([...log, ...troubles].join()).not.toContain("sekret");
  });

  test("a lost session is begun anew, and the call is answered", async () => {
    let isLost = true;
    const { url } = httpServer(({ method }, request) =>
      method === "tools/call" && isLost && request.headers.get("mcp-session-id") === "session-1"
        ? new Response("gone", { status: 404 })
        : undefined,
    );
    const { say } = await open([{ type: "http", name: "s", url, headers: {} }]);
    expect(await say("s__echo")).toBe("session-2");
    isLost = false;
    expect(await say("s__echo")).toBe("session-2");
  });

  test("one that loses every session is an outcome", async () => {
    const { url } = httpServer(({ method }) =>
      method === "tools/call" ? new Response("gone", { status: 404 }) : undefined,
    );
    const { say } = await open([{ type: "http", name: "s", url, headers: {} }]);
    expect(await within("an outcome", say("s__echo"))).toBe("error: MCP server s: Error POSTing to endpoint: gone");
  });

  test("redirects to elsewhere are not followed", async () => {
    const asked: string[] = [];
    const elsewhere = serve((request) => {
      asked.push(request.url);
      return new Response("secret place");
    });
    for (const to of [elsewhere, "file:///etc/passwd", "ftp://127.0.0.1/"]) {
      const url = serve(() => new Response(null, { status: 307, headers: { Location: to } }));
      const { troubles } = await open([{ type: "http", name: "s", url, headers: { "X-Key": "sekret-key" } }]);
      expect(troubles).toEqual([expect.stringContaining("MCP server s: ")]);
    }
    expect(asked).toEqual([]);
  });

  test("an answer without end is cut off", async () => {
    const { url } = httpServer(({ method }) => {
      if (method !== "tools/call") return undefined;
      const piece = new Uint8Array(1024 * 1024).fill(32);
      return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(piece) }), {
        headers: { "Content-Type": "application/json" },
      });
    });
    const { say } = await open([{ type: "http", name: "s", url, headers: {} }]);
    expect(await within("an outcome", say("s__echo"), 20_000)).toContain("the answer is larger than 33554432 bytes");
  });

  test("an answer that never comes is left at once when the call is cancelled", async () => {
    const { url } = httpServer(({ method }) => (method === "tools/call" ? new Promise(() => undefined) : undefined));
    const { say, close } = await open([{ type: "http", name: "s", url, headers: {} }]);
    const abort = new AbortController();
    const call = say("s__echo", {}, abort.signal);
    await Bun.sleep(50);
    abort.abort(new Error("stop it"));
    await expect(within("it is free", call)).rejects.toThrow("stop it");
    await within("it is closed", close());
  });
});
