// Listening addresses of every form, and what is said about those that cannot be opened.

import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ListenResult, listen, type Server } from "./listener.ts";

const folder = mkdtempSync(join(tmpdir(), "listener-"));
const opened: Server[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.stop(true);
  for (const name of ["a.sock", "file"]) rmSync(join(folder, name), { force: true });
});

const answer = async () => new Response("here");

async function open(address: string): Promise<ListenResult> {
  const result = await listen(address, folder, { fetch: answer });
  if (result.ok) opened.push(result.server);
  return result;
}

async function opens(address: string): Promise<string> {
  const result = await open(address);
  if (!result.ok) throw new Error(result.message);
  return result.address;
}

async function refusal(address: string): Promise<string> {
  const result = await open(address);
  if (result.ok) throw new Error(`${address} was opened`);
  return result.message;
}

/** A socket file whose listener is dead. */
async function leaveStaleSocket(path: string): Promise<void> {
  const script = `Bun.listen({ unix: ${JSON.stringify(path)}, socket: { data() {} } }); console.log("listening");`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  await child.stdout.getReader().read();
  child.kill("SIGKILL");
  await child.exited;
  expect(existsSync(path)).toBe(true);
}

describe("host and port", () => {
  test("port 0 takes a free one and says which", async () => {
    const address = await opens("127.0.0.1:0");
    expect(address).toMatch(/^127\.0\.0\.1:[1-9]\d*$/);
    expect(await (await fetch(`http://${address}/`)).text()).toBe("here");
  });

  test("a name of this machine", async () => {
    const address = await opens("localhost:0");
    expect(await (await fetch(`http://${address}/`)).text()).toBe("here");
  });

  test("IPv6 in brackets", async () => {
    const result = await open("[::1]:0");
    if (!result.ok) {
      expect(result.message).toContain("[::1]:0"); // a machine without IPv6
      return;
    }
    expect(result.address).toMatch(/^\[::1\]:[1-9]\d*$/);
    expect(await (await fetch(`http://${result.address}/`)).text()).toBe("here");
  });

  test("a port that is taken is a message that names the address", async () => {
    const address = await opens("127.0.0.1:0");
    expect(await refusal(address)).toBe(
      `server.bind_address: cannot listen on ${address}: another process uses it. Stop that one, or set another address.`,
    );
  });

  test("an address of another machine is a message, too", async () => {
    expect(await refusal("192.0.2.1:0")).toStartWith("server.bind_address: cannot listen on 192.0.2.1:0: ");
  });
});

describe("unix sockets", () => {
  const path = join(folder, "a.sock");

  test("a relative path is below the given folder", async () => {
    expect(await opens("unix:a.sock")).toBe(`unix:${path}`);
    expect(await (await fetch("http://localhost/", { unix: path })).text()).toBe("here");
  });

  test("owner and group may connect, or whom the mode names; files that others make meanwhile are not concerned", async () => {
    const umask = process.umask();
    await opens("unix:a.sock");
    expect(statSync(path).mode & 0o777).toBe(0o660);
    await opened.pop()?.stop(true);
    const result = await listen("unix:a.sock", folder, { fetch: answer }, 0o600);
    if (result.ok) opened.push(result.server);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await (await fetch("http://localhost/", { unix: path })).text()).toBe("here");
    expect(process.umask()).toBe(umask);
  });

  test("an absolute path stands for itself", async () => {
    expect(await opens(`unix:${path}`)).toBe(`unix:${path}`);
    expect(await (await fetch("http://localhost/", { unix: path })).text()).toBe("here");
  });

  test("a file that a killed process left behind is replaced", async () => {
    await leaveStaleSocket(path);
    expect(await opens("unix:a.sock")).toBe(`unix:${path}`);
    expect(await (await fetch("http://localhost/", { unix: path })).text()).toBe("here");
  });

  test("one that somebody listens on is left to them", async () => {
    await opens("unix:a.sock");
    expect(await refusal("unix:a.sock")).toContain("another process uses it");
    expect(await (await fetch("http://localhost/", { unix: path })).text()).toBe("here");
  });

  test("a file that is no socket is never removed", async () => {
    const file = join(folder, "file");
    writeFileSync(file, "precious");
    expect(await refusal("unix:file")).toStartWith("server.bind_address: cannot listen on unix:file");
    expect(await Bun.file(file).text()).toBe("precious");
  });
});

test("bodies of any size reach the handler, which has limits of its own", async () => {
  const result = await listen("127.0.0.1:0", folder, {
    fetch: async (request) => new Response(String((await request.bytes()).length)),
  });
  if (!result.ok) throw new Error(result.message);
  opened.push(result.server);
  const size = 130 * 1024 * 1024;
  const response = await fetch(`http://${result.address}/`, { method: "POST", body: new Uint8Array(size) });
  expect(await response.text()).toBe(String(size));
});
