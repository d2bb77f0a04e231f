import { afterAll, describe, expect, test } from "bun:test";
import type { GatewayError } from "../errors/gateway-error.ts";
import { createDeadlines, type Deadline, type Deadlines } from "../lib/deadlines.ts";
import { createExternalFetch, type ExternalFetchParts, type ExternalFetchRequest } from "./fetch-external.ts";

/** A certificate for files.test alone, made for these tests. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBmDCCAT6gAwIBAgIUanj1YsCeUEmE5cDH5Orm4mROTJEwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKZmlsZXMudGVzdDAgFw0yNjExMjExMjM0MzNaGA8yMTI2MTAy
ODEyMzQzM1owFTETMBEGA1UEAwwKZmlsZXMudGVzdDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABIQwjzfiJ3Yqk0A79/r8nsSX45eX08k2UdNFkG1JCuxt0Onvok6Q
/kmHQLQiyr8DjRMkQYwM4AzurzWNk5jMFtmjajBoMB0GA1UdDgQWBBRKy6VRou87
WQwCtBX7XVxul2c1RjAfBgNVHSMEGDAWgBRKy6VRou87WQwCtBX7XVxul2c1RjAP
BgNVHRMBAf8EBTADAQH/MBUGA1UdEQQOMAyCCmZpbGVzLnRlc3QwCgYIKoZIzj0E
AwIDSAAwRQIgfelpBl89InLwxd2fAju0KdoNZZlSeLUkdCtmSN0KYkgCIQDVheU/
FSDytkjuvNaIVhxftRNeEetATLabYAob2uFn/w==
-----END CERTIFICATE-----`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg40l8BjR/k2t2tBgq
v8MNtCNxRg3KCnn4FhQ2VaLAU0WhRANCAASEMI834id2KpNAO/f6/J7El+OXl9PJ
NlHTRZBtSQrsbdDp76JOkP5Jh0C0Isq/A40TJEGMDOAM7q81jZOYzBbZ
-----END PRIVATE KEY-----`;

const PNG = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1");
const MEBIBYTE = 1024 * 1024;
const stops: (() => void)[] = [];
afterAll(() => {
  for (const stop of stops) stop();
});

interface TestServer {
  port: number;
  requests: { url: string; headers: Headers }[];
}

type Answer = (request: Request) => Response | Promise<Response>;

const png: Answer = () => new Response(PNG, { headers: { "Content-Type": "image/png" } });

function serve(
  answer: Answer = png,
  hostname = "127.0.0.1",
  port = 0,
  tls?: { cert: string; key: string },
): TestServer {
  const requests: TestServer["requests"] = [];
  const fetch = (request: Request) => {
    requests.push({ url: request.url, headers: new Headers(request.headers) });
    return answer(request);
  };
  const server = Bun.serve({ hostname, port, fetch, ...(tls && { tls }) });
  stops.push(() => server.stop(true));
  return { port: server.port as number, requests };
}

/** Names of the tests; none of them is known to any resolver. */
const onLoopback: Partial<ExternalFetchParts> = {
  resolve: async () => ["127.0.0.1"],
  allowAddress: (address) => address === "127.0.0.1",
};

function get(
  url: string,
  options: Partial<ExternalFetchParts> = onLoopback,
  request: Partial<ExternalFetchRequest> = {},
) {
  const fetchExternal = createExternalFetch({ deadlines: createDeadlines(), ...options });
  return fetchExternal({ url, param: "file_url", ...request });
}

async function refusal(result: Promise<unknown>): Promise<GatewayError> {
  const error = await result.then(
    () => new Error("was fetched"),
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ name: "GatewayError", status: 400, param: "file_url" });
  return error as GatewayError;
}

describe("hosts that are never asked", () => {
  const hosts = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "017700000001",
    "0177.0.0.01",
    "127.0.0.1.",
    "%31%32%37.0.0.1",
    "１２７.０.０.１",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "0",
    "0.0.0.0",
    "10.0.0.1",
    "0xa.0.0.1",
    "012.0.0.1",
    "167772161",
    "100.64.0.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "172.16.0.1",
    "192.168.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2001:0:1::1]",
    "[2001:db8::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "localhost",
    "LocalHost",
    "localhost.",
    "ⓛocalhost",
    "loc\u00adalhost",
    "x.localhost",
    "localhost.localdomain",
    "metadata.google.internal",
    "printer.local",
    "redis",
  ];
  for (const host of hosts) {
    test(`http://${host}/`, async () => {
      const resolve = async () => {
        throw new Error("was looked up");
      };
      const { message } = await refusal(get(`http://${host}/`, { resolve }));
      expect(message).toContain("local, private or reserved");
    });
  }
});

describe("URLs that are refused as such", () => {
  test.each([
    ["ftp://example.com/a", /http or https/],
    ["file:///etc/passwd", /http or https/],
    ["gopher://example.com/", /http or https/],
    ["javascript:alert(1)", /http or https/],
    ["//example.com/a", /http or https/],
    ["", /http or https/],
    ["http://", /http or https/],
    ["http://[fe80::1%25eth0]/", /http or https/],
    ["http://256.1.1.1/", /http or https/],
    ["http://1.2.3.4.5/", /http or https/],
    [`http://example.com/${"a".repeat(9000)}`, /http or https/],
    ["http://user@example.com/", /credentials/],
    ["http://user:sekret@example.com/", /credentials/],
    ["http://example.com:25/", /port 25/],
    ["http://example.com:22/", /port 22/],
    ["http://example.com:0/", /port 0/],
  ])("%s", async (url, message) => {
    const error = await refusal(get(url, { resolve: async () => ["8.8.8.8"] }));
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain("sekret");
    expect(error.message.length).toBeLessThan(300);
  });
});

describe("names", () => {
  test.each([
    [["10.0.0.1"]],
    [["8.8.8.8", "127.0.0.1"]],
    [["2606:4700::1111", "::1"]],
    [["::ffff:192.168.0.1"]],
    [["64:ff9b::a9fe:a9fe"]],
    [["fe80::1%eth0"]],
    [["nonsense"]],
  ])("one that resolves to %j is refused", async (addresses) => {
    const { message } = await refusal(get("https://files.example/a", { resolve: async () => addresses }));
    expect(message).toContain("local, private or reserved");
    for (const address of addresses) expect(message).not.toContain(address);
  });

  test.each([
    ["without addresses", async () => []],
    [
      "that is not found",
      async () => {
        throw new Error("ENOTFOUND");
      },
    ],
  ])("one %s", async (_what, resolve) => {
    expect((await refusal(get("https://files.example/a", { resolve }))).message).toContain("was not found");
  });

  test("an international name is looked up in its ASCII form", async () => {
    const asked: string[] = [];
    const resolve = async (name: string) => {
      asked.push(name);
      return [];
    };
    await refusal(get("https://bücher.example/a", { resolve }));
    expect(asked).toEqual(["xn--bcher-kva.example"]);
  });

  test("a local name leads only to addresses that the operator opened", async () => {
    const server = serve();
    const url = `http://files.internal:${server.port}/a.png`;
    const { message } = await refusal(get(url, { resolve: async () => ["8.8.8.8"], allowAddress: () => false }));
    expect(message).toContain("local, private or reserved");
    expect((await get(url)).mediaType).toBe("image/png");
  });
});

describe("the address that was checked is the one that is connected to", () => {
  test("a name that changes its mind", async () => {
    const good = serve();
    const evil = serve(png, "127.0.0.2", good.port);
    const answers = [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2"]];
    let lookups = 0;
    const resolve = async () => answers[lookups++] ?? [];
    const file = await get(`http://rebind.test:${good.port}/a.png?x=1`, { ...onLoopback, resolve });
    expect(file).toEqual({ mediaType: "image/png", bytes: expect.anything() });
    expect(lookups).toBe(1);
    expect(evil.requests).toHaveLength(0);
    expect(good.requests.map(({ headers }) => headers.get("host"))).toEqual([`rebind.test:${good.port}`]);
    expect(new URL(good.requests[0]?.url ?? "").search).toBe("?x=1");
  });

  test("a name that changes its mind between two hops", async () => {
    const first = serve(() => new Response(null, { status: 302, headers: { Location: "/b.png" } }));
    const evil = serve(png, "127.0.0.2", first.port);
    const answers = [["127.0.0.1"], ["127.0.0.2"]];
    const resolve = async () => answers.shift() ?? [];
    const error = await refusal(get(`http://rebind.test:${first.port}/a.png`, { ...onLoopback, resolve }));
    expect(error.message).toContain("local, private or reserved");
    expect(evil.requests).toHaveLength(0);
  });

  test("https: the certificate must be that of the name", async () => {
    const server = serve(png, "127.0.0.1", 0, { cert: CERTIFICATE, key: KEY });
    const options = { ...onLoopback, ca: CERTIFICATE };
    expect((await get(`https://files.test:${server.port}/a`, options)).mediaType).toBe("image/png");
    expect((await get(`https://files.test.:${server.port}/a`, options)).mediaType).toBe("image/png");
    const wrongName = await refusal(get(`https://other.test:${server.port}/a`, options));
    expect(wrongName.message).toContain("could not be reached");
    const unknownAuthority = await refusal(get(`https://files.test:${server.port}/a`, onLoopback));
    expect(unknownAuthority.message).toContain("could not be reached");
    expect(server.requests).toHaveLength(2);
  });

  test("the second address is tried when the first one is dead", async () => {
    const server = serve();
    const options = {
      resolve: async () => ["127.0.0.3", "127.0.0.1"],
      allowAddress: (address: string) => address.startsWith("127."),
    };
    expect((await get(`http://files.test:${server.port}/`, options)).bytes).toEqual(PNG);
  });

  test("a literal IPv6 address", async () => {
    const server = serve(png, "::1");
    const options = { allowAddress: (address: string) => address === "::1" };
    expect((await get(`http://[::1]:${server.port}/`, options)).mediaType).toBe("image/png");
    expect(server.requests[0]?.headers.get("host")).toBe(`[::1]:${server.port}`);
  });
});

describe("redirects", () => {
  const redirect =
    (location: string, status = 302) =>
    () =>
      new Response(null, { status, headers: { Location: location } });

  test.each([301, 302, 303, 307, 308])("%d is followed", async (status) => {
    const server = serve((request) => (request.url.endsWith("/b") ? png(request) : redirect("b", status)()));
    expect((await get(`http://files.test:${server.port}/a`)).mediaType).toBe("image/png");
  });

  test.each([
    "http://127.0.0.2:PORT/",
    "http://0x7f000002:PORT/",
    "http://localhost/",
    "http://[::1]:PORT/",
    "http://169.254.169.254/latest/meta-data",
  ])("to %s is refused", async (location) => {
    const first: TestServer = serve((request) => redirect(location.replace("PORT", new URL(request.url).port))());
    const evil = serve(png, "127.0.0.2", first.port);
    const resolve = async (name: string) => [name === "files.test" ? "127.0.0.1" : "127.0.0.2"];
    const error = await refusal(get(`http://files.test:${first.port}/`, { ...onLoopback, resolve }));
    expect(error.message).toContain("local, private or reserved");
    expect(evil.requests).toHaveLength(0);
  });

  test.each([
    ["ftp://example.com/", /http or https/],
    ["http://user:sekret@files.test/", /credentials/],
    ["http://files.test:25/", /port 25/],
    ["http://[", /without a target/],
    ["", /could not|without a target|more than/],
  ])("to %j is refused", async (location, message) => {
    const server = serve(redirect(location));
    expect((await refusal(get(`http://files.test:${server.port}/`))).message).toMatch(message);
  });

  test("from https to http is not followed", async () => {
    const plain = serve();
    const target = `http://files.test:${plain.port}/`;
    const server = serve(redirect(target), "127.0.0.1", 0, { cert: CERTIFICATE, key: KEY });
    const error = await refusal(get(`https://files.test:${server.port}/`, { ...onLoopback, ca: CERTIFICATE }));
    expect(error.message).toContain("from https to http");
    expect(plain.requests).toHaveLength(0);
  });

  test("three are followed, a fourth is not", async () => {
    const hops = (count: number) =>
      serve((request) => {
        const hop = Number(new URL(request.url).pathname.slice(1));
        return hop === count ? png(request) : redirect(`/${hop + 1}`)();
      });
    const three = hops(3);
    expect((await get(`http://files.test:${three.port}/0`)).mediaType).toBe("image/png");
    const four = hops(4);
    expect((await refusal(get(`http://files.test:${four.port}/0`))).message).toContain("more than 3 redirects");
    expect(four.requests).toHaveLength(4);
  });
});

describe("what is answered", () => {
  const answered = (headers: Record<string, string>, body: string | Uint8Array = PNG, status = 200) => {
    const server = serve(() => new Response(body as string, { status, headers }));
    return (request: Partial<ExternalFetchRequest> = {}) =>
      get(`http://files.test:${server.port}/`, onLoopback, request);
  };

  test("the content decides where the server does not know", async () => {
    expect((await answered({ "Content-Type": "application/octet-stream" })()).mediaType).toBe("image/png");
    expect((await answered({ "Content-Type": "image/jpeg" })()).mediaType).toBe("image/png");
  });

  test("plain text", async () => {
    const text = answered({ "Content-Type": "text/plain; charset=utf-8" }, "grüße");
    expect((await text({ accepted: { plainText: true } })).mediaType).toBe("text/plain");
    expect((await refusal(text())).message).toContain("text/plain");
  });

  test.each([
    ["text/html", "<html>", /media type "text\/html"/],
    ["application/pdf", "<html>", /content is not/],
    ["image/png", "<html>", /content is not/],
    ["application/octet-stream", "<html>", /unknown type|not accepted/],
    ["image/svg+xml", "<svg/>", /media type/],
    ["image/png", "", /empty/],
  ])("%s with %j is refused", async (type, body, message) => {
    expect((await refusal(answered({ "Content-Type": type }, body)())).message).toMatch(message);
  });

  test("an error status, without a word of its body", async () => {
    const { message } = await refusal(answered({ "Content-Type": "image/png" }, "internal page", 403)());
    expect(message).toContain("HTTP 403");
    expect(message).not.toContain("internal page");
  });

  test("a compressed answer is refused", async () => {
    const body = Bun.gzipSync(PNG as Uint8Array<ArrayBuffer>);
    const answer = answered({ "Content-Type": "image/png", "Content-Encoding": "gzip" }, body);
    expect((await refusal(answer())).message).toContain("compressed");
  });

  test("no credentials and no cookies go along", async () => {
    const server = serve();
    await get(`http://files.test:${server.port}/`);
    const names = [...(server.requests[0]?.headers.keys() ?? [])].sort();
    expect(names).toEqual(["accept", "accept-encoding", "host", "user-agent"]);
  });
});

describe("bounds", () => {
  test("an announced size over the limit is not read", async () => {
    const server = serve(
      () => new Response(Buffer.alloc(20 * MEBIBYTE + 1), { headers: { "Content-Type": "image/png" } }),
    );
    expect((await refusal(get(`http://files.test:${server.port}/`))).message).toContain("at most 20 MB");
  });

  test("an endless answer is given up at the limit", async () => {
    const { promise: wasGivenUp, resolve: gaveUp } = Promise.withResolvers<void>();
    let sentBytes = 0;
    const body = () =>
      new ReadableStream({
        pull(controller) {
          const chunk = sentBytes === 0 ? PNG : new Uint8Array(MEBIBYTE);
          sentBytes += chunk.length;
          controller.enqueue(chunk);
        },
        cancel: () => gaveUp(),
      });
    const server = serve(() => new Response(body(), { headers: { "Content-Type": "image/png" } }));
    expect((await refusal(get(`http://files.test:${server.port}/`))).message).toContain("at most 20 MB");
    await wasGivenUp;
    expect(sentBytes).toBeGreaterThan(20 * MEBIBYTE);
    expect(sentBytes).toBeLessThan(60 * MEBIBYTE);
  });

  test("onBytes can end it", async () => {
    const server = serve();
    const onBytes = () => {
      throw new Error("enough");
    };
    await refusal(get(`http://files.test:${server.port}/`, onLoopback, { onBytes }));
  });

  /** Deadlines that pass when the test says so. */
  function manualDeadlines(): { deadlines: Deadlines; expire: () => void; open: Set<Deadline> } {
    const open = new Set<Deadline>();
    const deadlines: Deadlines = {
      add: (entry) => void open.add(entry),
      remove: (entry) => void open.delete(entry),
      get size() {
        return open.size;
      },
    };
    const expire = () => {
      for (const entry of open) entry.expire();
    };
    return { deadlines, expire, open };
  }

  const silences: [what: string, Answer][] = [
    ["headers", () => new Promise<Response>(() => {})],
    [
      "a body",
      () =>
        new Response(
          new ReadableStream({
            start: (controller) => controller.enqueue(PNG),
            pull: () => new Promise(() => {}),
          }),
          { headers: { "Content-Type": "image/png" } },
        ),
    ],
  ];

  test.each(silences)("the time limit ends the wait for %s", async (_what, answer) => {
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const server = serve((request) => {
      resolve();
      return answer(request);
    });
    const { deadlines, expire, open } = manualDeadlines();
    const result = refusal(get(`http://files.test:${server.port}/`, { ...onLoopback, deadlines }));
    await asked;
    expire();
    expect((await result).message).toContain("in time");
    expect(open.size).toBe(0);
  });

  test("the time limit ends the wait for a name", async () => {
    const { deadlines, expire } = manualDeadlines();
    const { promise: asked, resolve: wasAsked } = Promise.withResolvers<void>();
    const resolve = () => {
      wasAsked();
      return new Promise<string[]>(() => {});
    };
    const result = refusal(get("http://files.example/", { resolve, deadlines }));
    await asked;
    expire();
    expect((await result).message).toContain("in time");
  });

  test("a client that leaves ends it", async () => {
    const { promise: asked, resolve } = Promise.withResolvers<Request>();
    const server = serve((request) => {
      resolve(request);
      return new Promise<Response>(() => {});
    });
    const { deadlines, open } = manualDeadlines();
    const abort = new AbortController();
    const options = { ...onLoopback, deadlines };
    const result = get(`http://files.test:${server.port}/`, options, { signal: abort.signal });
    const left = result.catch((error: unknown) => error);
    const request = await asked;
    const { promise: closed, resolve: wasClosed } = Promise.withResolvers<void>();
    request.signal.addEventListener("abort", () => wasClosed());
    abort.abort();
    expect(await left).toMatchObject({ name: "GatewayError", status: 408 });
    await closed;
    expect(open.size).toBe(0);
  });

  test("a client that has left already asks nobody", async () => {
    const server = serve();
    const signal = AbortSignal.abort();
    const left = await get(`http://files.test:${server.port}/`, onLoopback, { signal }).catch(
      (error: unknown) => error,
    );
    expect(left).toMatchObject({ status: 408 });
    expect(server.requests).toHaveLength(0);
  });
});
