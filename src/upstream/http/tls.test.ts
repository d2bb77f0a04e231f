// What is asked of certificates. They are made by openssl, without which these tests are left out.

import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server } from "node:tls";
import { backendAt, bodyOf, failureOf, HELLO, POST } from "../../../test/support/socket-bed.ts";
import type { BackendTls } from "../backend-tls.ts";
import { createSocketClient } from "./socket-client.ts";

const folder = mkdtempSync(join(tmpdir(), "signalbox-tls-"));
const servers: Server[] = [];
/** Which name and which protocol the clients have asked for. */
const asked: unknown[] = [];
afterAll(() => {
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true });
});

function makeCertificate(name: string, names: string): { key: string; cert: string } {
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)];
  const command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", `/CN=${name}`];
  const { exitCode } = Bun.spawnSync([...command, "-keyout", key, "-out", cert, "-addext", `subjectAltName=${names}`]);
  if (exitCode !== 0) throw new Error("openssl made no certificate");
  return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
}

async function serve(certificate: { key: string; cert: string }): Promise<number> {
  const server = createServer({ ...certificate, ALPNProtocols: ["h2", "http/1.1"] }, (socket) => {
    asked.push([(socket as { servername?: unknown }).servername, socket.alpnProtocol]);
    let end = "";
    socket.setEncoding("latin1").on("error", () => {});
    socket.on("data", (text) => {
      end = (end + text).slice(-5);
      if (end === "hello") socket.write(HELLO);
    });
  });
  servers.push(server.on("tlsClientError", () => {}));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as { port: number }).port;
}

async function ask(port: number, host: string, tls?: BackendTls, body = "hello") {
  const client = createSocketClient({ maxIdle: 1, tlsOf: () => tls });
  const call = client.call(backendAt(`https://${host}:${port}`), "/", { ...POST, body });
  const failure = await failureOf(call);
  const outcome = failure === "an answer" ? await bodyOf(call) : failure;
  const { open } = client;
  client.close();
  return [outcome, open];
}

describe.skipIf(Bun.which("openssl") === null)("certificates", async () => {
  const own = Bun.which("openssl") === null ? undefined : makeCertificate("own", "DNS:localhost,IP:127.0.0.1");
  const other = Bun.which("openssl") === null ? undefined : makeCertificate("other", "DNS:other.test");

  test("of authorities that are trusted, for the name in the address", async () => {
    const port = await serve(own!);
    expect(await ask(port, "localhost", { ca: own!.cert })).toEqual(["hello", 1]);
    expect(await ask(port, "127.0.0.1", { ca: own!.cert })).toEqual(["hello", 1]);
    const large = `${"x".repeat(8_000_000)}hello`;
    expect(await ask(port, "localhost", { ca: own!.cert }, large)).toEqual(["hello", 1]);
    expect(asked.slice(0, 2)).toEqual([
      ["localhost", "http/1.1"],
      [false, "http/1.1"],
    ]);
  });

  test("that nobody vouches for", async () => {
    expect(await ask(await serve(own!), "localhost")).toEqual(["DEPTH_ZERO_SELF_SIGNED_CERT", 0]);
    expect(await ask(await serve(own!), "localhost", { ca: other!.cert })).toEqual(["DEPTH_ZERO_SELF_SIGNED_CERT", 0]);
  });

  test("for another name, unless that is the one that is wanted", async () => {
    const port = await serve(other!);
    for (const host of ["localhost", "127.0.0.1"]) {
      expect(await ask(port, host, { ca: other!.cert })).toEqual(["ERR_TLS_CERT_ALTNAME_INVALID", 0]);
    }
    expect(await ask(port, "localhost", { ca: other!.cert, serverName: "other.test" })).toEqual(["hello", 1]);
  });

  test("to trust that are none", async () => {
    expect(await ask(1, "localhost", { ca: "not PEM" })).toEqual(["ERR_BORINGSSL", 0]);
  });
});

test("a port that speaks no TLS", async () => {
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n") },
  });
  expect(await ask(listener.port, "localhost")).toEqual(["EPROTO", 0]);
  listener.stop(true);
});
