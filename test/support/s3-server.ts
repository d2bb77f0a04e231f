// An S3 server for tests: s3rver, behind a door that checks the signatures (version 4), which s3rver itself does not.

import { createHash, createHmac } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { installedProgram, S3RVER } from "../../scripts/npm-programs.ts";

const ACCESS_KEY = "access-sekret";
const SECRET_KEY = "secret-sekret";
const BUCKET = "bucket-1";
/** Answers up to here are not cut. */
const WHOLE_BYTES = 32 * 1024;

const PROGRAM = `
  const { createRequire } = require("node:module");
  const [folder, from] = process.argv.slice(1);
  const load = createRequire(from);
  const S3rver = load("s3rver");
  // It encrypts marks of long lists by a cipher that OpenSSL 3 no longer has; gateways do not use the marks.
  const crypto = require("node:crypto");
  const { createCipheriv } = crypto;
  const zeros = Buffer.alloc(16);
  crypto.createCipheriv = (name, ...given) =>
    name === "des" ? createCipheriv("aes-128-cbc", zeros, zeros) : createCipheriv(name, ...given);
  load("s3rver/lib/models/account.js").DUMMY_ACCOUNT.createKeyPair("${ACCESS_KEY}", "unused");
  const options = { address: "127.0.0.1", port: 0, silent: true, vhostBuckets: false };
  new S3rver({ ...options, directory: folder, configureBuckets: [{ name: "${BUCKET}" }] })
    .run()
    .then(({ port }) => console.log(port));
`;

export type S3Server = Awaited<ReturnType<typeof startS3Server>>;

interface S3Faults {
  /** Answers in place of the server, where it gives something. */
  answer(request: Request): Response | Promise<Response> | undefined;
  /** Connections end after the first bytes of contents; entries of lists are shorter. */
  cutsAnswers: boolean;
}

export async function startS3Server() {
  const modules = dirname(dirname(await installedProgram(S3RVER)));
  const folder = mkdtempSync(join(tmpdir(), "s3-"));
  const child = Bun.spawn(["node", "-e", PROGRAM, folder, join(modules, "from.js")], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  const inner = `http://127.0.0.1:${Number(new TextDecoder().decode(value))}`;
  const requests: string[] = [];
  const faults: S3Faults = { answer: () => undefined, cutsAnswers: false };
  const door = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    // The largest input of a batch has 200 MB.
    maxRequestBodySize: 512 * 1024 ** 2,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      requests.push(`${request.method} ${pathname}${search}`);
      const fault = await faults.answer(request);
      if (fault !== undefined) return fault;
      if (!isSigned(request)) return refusal("SignatureDoesNotMatch");
      const headers = new Headers(request.headers);
      headers.set("Host", new URL(inner).host);
      const body = request.body === null ? undefined : request.body;
      // A signature in the address is settled here.
      const query = new URLSearchParams(search);
      for (const name of [...query.keys()]) if (name.startsWith("X-Amz-")) query.delete(name);
      const rest = query.size === 0 ? "" : `?${query}`;
      return fetch(inner + pathname + rest, { method: request.method, headers, body, redirect: "manual" });
    },
  });
  const front = createServer((client) => {
    const server = connect(door.port as number, "127.0.0.1");
    client.pipe(server);
    let sent = 0;
    server.on("data", (bytes) => {
      sent += bytes.length;
      if (faults.cutsAnswers && sent > WHOLE_BYTES) client.end(bytes);
      else client.write(bytes);
    });
    server.on("close", () => client.end()).on("error", () => {});
    client.on("close", () => server.destroy()).on("error", () => {});
  });
  await new Promise<void>((resolve) => void front.listen(0, "127.0.0.1", resolve));
  return {
    settings: {
      endpoint: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
      bucket: BUCKET,
      region: "us-east-1",
      access_key: ACCESS_KEY,
      secret_key: SECRET_KEY,
      key_prefix: "files/",
    },
    /** What was asked, in order. */
    requests,
    faults,
    /** The keys of all objects. Parts of uploads that were given up are no objects; s3rver keeps them. */
    keys(): string[] {
      const names = readdirSync(join(folder, BUCKET), { recursive: true }) as string[];
      return names.flatMap((name) => /^(.+)\._S3rver_object$/.exec(name)?.[1] ?? []);
    },
    /** The last parts of the keys of all objects but the entries of lists. */
    objects(): string[] {
      return this.keys().flatMap((key) => (key.includes("/lists/") ? [] : (key.split("/").at(-1) ?? [])));
    },
    async stop(): Promise<void> {
      front.close();
      await door.stop(true);
      child.kill();
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function refusal(code: string): Response {
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>Checked with ${SECRET_KEY}.</Message></Error>`;
  return new Response(body, { status: 403, headers: { "Content-Type": "application/xml" } });
}

/** AWS Signature Version 4, in the header or in the address. */
function isSigned(request: Request): boolean {
  const url = new URL(request.url);
  const inAddress = url.searchParams.get("X-Amz-Signature");
  const [accessKeyIn, dayIn, regionIn] = url.searchParams.get("X-Amz-Credential")?.split("/") ?? [];
  const signedIn = url.searchParams.get("X-Amz-SignedHeaders");
  const authorization =
    inAddress === null
      ? (request.headers.get("Authorization") ?? "")
      : `AWS4-HMAC-SHA256 Credential=${accessKeyIn}/${dayIn}/${regionIn}/s3/aws4_request, SignedHeaders=${signedIn}, Signature=${inAddress}`;
  const found =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      authorization,
    );
  if (found === null) return false;
  const [, accessKey, day, region, signedHeaders = "", signature] = found as unknown as string[];
  const query = [...url.searchParams]
    .filter(([name]) => name !== "X-Amz-Signature")
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join("&");
  const headers = signedHeaders.split(";").map((name) => `${name}:${request.headers.get(name)?.trim()}\n`);
  const payload = inAddress === null ? request.headers.get("x-amz-content-sha256") : "UNSIGNED-PAYLOAD";
  const canonical = [request.method, url.pathname, query, headers.join(""), signedHeaders, payload].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const digest = createHash("sha256").update(canonical).digest("hex");
  const date = request.headers.get("x-amz-date") ?? url.searchParams.get("X-Amz-Date");
  const text = ["AWS4-HMAC-SHA256", date, scope, digest].join("\n");
  const hmac = (key: string | Buffer, data: string) => createHmac("sha256", key).update(data).digest();
  const key = [region as string, "s3", "aws4_request"].reduce<Buffer>(hmac, hmac(`AWS4${SECRET_KEY}`, day as string));
  return accessKey === ACCESS_KEY && hmac(key, text).toString("hex") === signature;
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
