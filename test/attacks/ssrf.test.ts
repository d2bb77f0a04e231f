// Requests that try to make the gateway ask its own machine or network: every way to write such an address, through every
// field that holds a link. The trap listens where the links lead, and has to stay alone.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { TCPSocketListener } from "bun";
import { createDeadlines } from "../../src/lib/deadlines.ts";
import { createExternalFetch } from "../../src/media/fetch-external.ts";
import { expectErrorBody } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

/** Everything that ever connects to it, whatever it says. */
function openTrap() {
  const trap = { caught: 0, port: 0, listeners: [] as TCPSocketListener[] };
  const socket = {
    open: () => {
      trap.caught++;
    },
    data() {},
  };
  const first = Bun.listen({ hostname: "127.0.0.1", port: 0, socket });
  trap.port = first.port;
  trap.listeners.push(first);
  for (const hostname of ["127.127.127.127", "::1"]) {
    try {
      trap.listeners.push(Bun.listen({ hostname, port: trap.port, socket }));
    } catch {
      // a machine without IPv6
    }
  }
  return trap;
}

const trap = openTrap();
afterAll(() => {
  for (const listener of trap.listeners) listener.stop(true);
});

const HOSTS = [
  // this machine, in every notation of IPv4
  "127.0.0.1",
  "127.127.127.127",
  "127.1",
  "127.0.1",
  "2130706433",
  "0x7f000001",
  "0X7F.0x0.0x0.0x1",
  "0x7f.1",
  "017700000001",
  "0177.0.0.1",
  "00000177.00.0.01",
  "127.0.0.1.",
  "%31%32%37%2e0.0.1",
  "127%2E1",
  "１２７．０．０．１",
  "127。0。0。1",
  "127｡0｡0｡1",
  "①②⑦.⓪.⓪.①",
  "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
  "0",
  "0.0.0.0",
  // and of IPv6
  "[::]",
  "[::1]",
  "[0000:0000:0000:0000:0000:0000:0000:0001]",
  "[::0001]",
  "[::ffff:127.0.0.1]",
  "[::FFFF:7F00:1]",
  "[0:0:0:0:0:ffff:127.0.0.1]",
  "[::127.0.0.1]",
  "[::7f00:1]",
  "[::ffff:0:7f00:1]",
  "[64:ff9b::7f00:1]",
  "[64:ff9b::127.0.0.1]",
  "[64:ff9b:1::7f00:1]",
  "[2002:7f00:1::]",
  "[2001:0:7f00:1::]",
  "[fe80::1]",
  // names of it
  "localhost",
  "LocalHost",
  "localhost.",
  "x.y.localhost",
  "localhost.localdomain",
  "ip6-localhost",
  "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
  "loc%61lhost",
  "loc\u00adalhost",
  // the network around it, and what clouds keep there
  "10.0.0.1",
  "172.31.255.255",
  "192.168.0.1",
  "100.64.0.1",
  "169.254.169.254",
  "0xa9fea9fe",
  "2852039166",
  "[::ffff:169.254.169.254]",
  "[fd00:ec2::254]",
  "[fc00::1]",
  "100.100.100.200",
  "192.0.0.192",
  "168.63.129.16",
  "metadata.google.internal",
  "metadata",
  "kubernetes.default.svc.cluster.local",
  "224.0.0.1",
  "255.255.255.255",
];

const URLS = [
  // what a URL parser reads as another place than a person does
  "http://example.com@127.0.0.1:PORT/",
  "http://example.com:80@127.0.0.1:PORT/",
  "http://example.com%23@127.0.0.1:PORT/",
  "http://127.0.0.1:PORT@example.com/",
  "http://127.0.0.1:PORT\\@example.com/",
  "http://127.0.0.1:PORT#@example.com/",
  "http://127.0.0.1:PORT?@example.com/",
  "http:127.0.0.1:PORT/",
  "http:/127.0.0.1:PORT/",
  "http:////127.0.0.1:PORT/",
  "http:\\\\127.0.0.1:PORT\\",
  "HTTP://127.0.0.1:PORT/",
  " \thttp://127.0.0.1:PORT/",
  "ht\ntp://127.0.\r0.1:PORT/",
  "http://127.0.0.1:PORT/../../x",
  "https://127.0.0.1:PORT/",
  "http://[fe80::1%25lo]:PORT/",
  "http://[::1%25lo]:PORT/",
  "http://[::1]%20:PORT/",
  // other protocols, also those of services that answer to anything
  "file:///etc/passwd",
  "FILE:/etc/passwd",
  "file://127.0.0.1/etc/passwd",
  "gopher://127.0.0.1:PORT/_GET%20/",
  "dict://127.0.0.1:PORT/info",
  "ftp://127.0.0.1:PORT/",
  "sftp://127.0.0.1:PORT/",
  "tftp://127.0.0.1:PORT/x",
  "ldap://127.0.0.1:PORT/",
  "ws://127.0.0.1:PORT/",
  "jar:http://127.0.0.1:PORT/!/",
  "view-source:http://127.0.0.1:PORT/",
  "blob:http://127.0.0.1:PORT/x",
  "unix:/var/run/docker.sock",
  "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
  "javascript:fetch('http://127.0.0.1:PORT')",
  "//127.0.0.1:PORT/",
  "/etc/passwd",
  "127.0.0.1:PORT/",
  "",
  // ports of other services at addresses that are public
  "http://8.8.8.8:22/",
  "http://8.8.8.8:25/",
  "http://8.8.8.8:0/",
];

/** Read as a public host by one parser and as a private one by another; only what is handed on meets the other one. */
const TWO_READINGS = [
  "http://example.com\\@127.0.0.1:PORT/",
  "http:example.com/@127.0.0.1:PORT/",
  "http:\\\\example.com/",
  "ht\ntp://example.com/",
  "http://exam\tple.com/",
  " http://example.com/",
];

const LINKS = [...HOSTS.map((host) => `http://${host}:PORT/`), ...URLS];

/** Some of them for every field: that all fields share one check is what they show. */
const FEW = [
  "http://127.0.0.1:PORT/",
  "http://2130706433:PORT/",
  "http://[::ffff:7f00:1]:PORT/",
  "http://localhost.:PORT/",
  "http://169.254.169.254:PORT/",
  "http://example.com@127.0.0.1:PORT/",
  "file:///etc/passwd",
  "gopher://127.0.0.1:PORT/",
];

const withPort = (link: string) => link.replaceAll("PORT", String(trap.port));

interface Field {
  what: string;
  path: string;
  body(url: string, model: string): object;
  /** As errors name it. */
  param: string | RegExp;
  model: string;
}

const user = (content: object[]) => [{ role: "user", content }];

const FIELDS: Field[] = [
  {
    what: "image of a chat request, fetched for a backend",
    path: "/v1/chat/completions",
    model: "fetched",
    body: (url, model) => ({ model, messages: user([{ type: "image_url", image_url: { url } }]) }),
    param: "messages[0].content[0].image_url.url",
  },
  ...(["image_url", "audio_url", "video_url"] as const).map(
    (type): Field => ({
      what: `${type} of a chat request, handed on`,
      path: "/v1/chat/completions",
      model: "passed",
      body: (url, model) => ({ model, messages: user([{ type, [type]: { url } }]) }),
      param: `messages[0].content[0].${type}.url`,
    }),
  ),
  {
    what: "address of a picture that is no object, handed on",
    path: "/v1/chat/completions",
    model: "passed",
    body: (url, model) => ({ model, messages: user([{ type: "image_url", image_url: url }]) }),
    param: "messages[0].content[0].image_url",
  },
  ...["image", "document"].map(
    (type): Field => ({
      what: `${type} of a Messages request, handed on`,
      path: "/v1/messages",
      model: "claude",
      body: (url, model) => ({ model, max_tokens: 9, messages: user([{ type, source: { type: "url", url } }]) }),
      param: "messages[0].content[0].source.url",
    }),
  ),
  {
    what: "image of a request to count tokens",
    path: "/v1/messages/count_tokens",
    model: "claude",
    body: (url, model) => ({ model, messages: user([{ type: "image", source: { type: "url", url } }]) }),
    param: "messages[0].content[0].source.url",
  },
  {
    what: "file of a request of Gemini's format, fetched for a backend",
    path: "/v1beta/models/fetched:generateContent",
    model: "fetched",
    body: (fileUri) => ({ contents: [{ parts: [{ fileData: { mimeType: "image/png", fileUri } }] }] }),
    param: "contents[0].parts[0].fileData.fileUri",
  },
  {
    what: "file in the result of a function of Gemini's format, in snake_case",
    path: "/v1beta/models/fetched:generateContent",
    model: "fetched",
    body: (file_uri) => ({
      contents: [{ parts: [{ function_response: { name: "f", parts: [{ file_data: { file_uri } }] } }] }],
    }),
    param: "contents[0].parts[0].function_response.parts[0].fileData.fileUri",
  },
  {
    what: "image of a Messages request, fetched for a backend",
    path: "/v1/messages",
    model: "fetched",
    body: (url, model) => ({
      model,
      max_tokens: 9,
      messages: user([{ type: "image", source: { type: "url", url } }]),
    }),
    param: "messages[0].content[0].source.url",
  },
  {
    what: "document of a Messages request, fetched for a backend that takes no link to one",
    path: "/v1/messages",
    model: "passed",
    body: (url, model) => ({
      model,
      max_tokens: 9,
      messages: user([{ type: "document", source: { type: "url", url } }]),
    }),
    param: "messages[0].content[0].source.url",
  },
  {
    what: "image in the result of a tool, fetched for a backend",
    path: "/v1/messages",
    model: "fetched",
    body: (url, model) => ({
      model,
      max_tokens: 9,
      messages: [
        { role: "user", content: "look" },
        { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "f", input: {} }] },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "image", source: { type: "url", url } }] },
          ],
        },
      ],
    }),
    param: /^messages\[2\]\.content\[0\]\.content\[0\]\.source\.url$/,
  },
  ...["fetched", "passed", "native"].flatMap((model): Field[] => [
    {
      what: `image of a Responses request, model ${model}`,
      path: "/v1/responses",
      model,
      body: (url) => ({ model, input: user([{ type: "input_image", image_url: url }]) }),
      param: "input[0].content[0].image_url",
    },
    {
      what: `file of a Responses request, model ${model}`,
      path: "/v1/responses",
      model,
      body: (url) => ({ model, input: user([{ type: "input_file", file_url: url }]) }),
      param: "input[0].content[0].file_url",
    },
    {
      what: `image in the result of a function, model ${model}`,
      path: "/v1/responses",
      model,
      body: (url) => ({
        model,
        input: [
          { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
          { type: "function_call_output", call_id: "call_1", output: [{ type: "input_image", image_url: url }] },
        ],
      }),
      param: "input[1].output[0].image_url",
    },
  ]),
  {
    what: "screenshot of a computer, passed on",
    path: "/v1/responses",
    model: "native",
    body: (url, model) => ({
      model,
      input: [
        { type: "computer_call_output", call_id: "call_1", output: { type: "computer_screenshot", image_url: url } },
      ],
    }),
    param: "input[0].output.image_url",
  },
];

const fetched = bed.backend();
const passed = bed.backend();
const native = bed.backend();
const claude = bed.backend();
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      health_checks: { enabled: false },
      backends: [
        { name: "fetched", type: "ollama", url: fetched.url, models: ["fetched"] },
        { name: "passed", type: "vllm", url: passed.url, models: ["passed"], protocols: ["chat"] },
        { name: "claude", type: "anthropic", url: claude.url, models: ["claude"], api_key: "sekret-claude" },
        { name: "native", type: "openai", url: native.url, models: ["native"], api_key: "sekret-native" },
      ],
    },
  });
});

async function expectRefused({ path, body, model, param }: Field, link: string): Promise<void> {
  const url = withPort(link);
  const response = await gateway.post(path, body(url, model));
  const text = await response.text();
  const told = text.slice(0, 400);
  if (response.status !== 400) throw new Error(`${JSON.stringify(url)}: answered ${response.status}: ${told}`);
  if (path.startsWith("/v1/messages")) expect(JSON.parse(text)).toMatchObject({ type: "error" });
  else if (path.startsWith("/v1beta")) expect(JSON.parse(text).error.message).toStartWith(param as string);
  else expect(expectErrorBody(response, text, 400).param).toMatch(param);
  // Where a name leads to is nobody's business.
  expect(told).not.toContain("ECONN");
  expect([url, trap.caught]).toEqual([url, 0]);
}

describe("the link is refused, and nobody is asked", () => {
  test.each(LINKS)("%j", async (link) => {
    await expectRefused(FIELDS[0] as Field, link);
  });

  test.each([...LINKS, ...TWO_READINGS])("%j, handed on", async (link) => {
    await expectRefused(FIELDS[1] as Field, link);
  });

  test.each(FIELDS.map((field) => [field.what, field] as const))("%s", async (_what, field) => {
    for (const link of FEW) await expectRefused(field, link);
  });

  test("among links that are fine, and while others are fetched", async () => {
    const content = ["https://example.com/a.png", "http://127.0.0.1:PORT/", "https://example.com/b.png"].map(
      (link) => ({
        type: "image_url",
        image_url: { url: withPort(link) },
      }),
    );
    const response = await gateway.post("/v1/chat/completions", { model: "fetched", messages: user(content) });
    expect(response.status).toBe(400);
    await response.body?.cancel();
  });

  afterAll(() => {
    for (const backend of [fetched, passed, native, claude]) expect(backend.requests).toHaveLength(0);
    expect(trap.caught).toBe(0);
  });
});

test("a link that is handed on untouched is not followed by the gateway", async () => {
  const url = "https://pictures.invalid/cat.png";
  const body = JSON.stringify({ model: "passed", messages: user([{ type: "image_url", image_url: { url } }]) });
  expect((await gateway.post("/v1/chat/completions", body)).status).toBe(200);
  expect(passed.lastRequest.text).toBe(body);
});

// The gateway asks the system's resolver; here names and first hops are scripted.
describe("names and redirects that lead inside", () => {
  const OUTSIDE = "files.test";

  function fetchThrough(addresses: Record<string, string>) {
    return createExternalFetch({
      deadlines: createDeadlines(),
      resolve: async (name) => [addresses[name] ?? "127.0.0.1"],
      allowAddress: (address) => address === "127.0.0.2",
    });
  }

  test.each(["127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", "::1", "::ffff:127.0.0.1", "fd00:ec2::254"])(
    "a name of %s",
    async (address) => {
      const fetchExternal = fetchThrough({ [OUTSIDE]: address });
      const url = `http://${OUTSIDE}:${trap.port}/`;
      await expect(fetchExternal({ url, param: "file_url" })).rejects.toThrow("local, private or reserved");
      expect(trap.caught).toBe(0);
    },
  );

  test.each([
    ...["127.0.0.1", "0x7f.1", "[::1]", "localhost", "127.0.0.1.", "①②⑦.⓪.⓪.①"].map((host) => `http://${host}:PORT/`),
    "//127.0.0.1:PORT/",
    "\\\\127.0.0.1:PORT/",
    "http://files.test@127.0.0.1:PORT/",
    "http://inside.test:PORT/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:PORT/",
    "data:image/png;base64,iVBORw0KGgo=",
    "unix:/var/run/docker.sock",
  ])("a redirect to %j", async (location) => {
    const headers = { Location: Buffer.from(withPort(location)).toString("latin1") };
    const first = Bun.serve({
      hostname: "127.0.0.2",
      port: 0,
      fetch: () => new Response(null, { status: 302, headers }),
    });
    try {
      const fetchExternal = fetchThrough({ [OUTSIDE]: "127.0.0.2" });
      const url = `http://${OUTSIDE}:${first.port}/`;
      await expect(fetchExternal({ url, param: "file_url" })).rejects.toMatchObject({ name: "GatewayError" });
      expect(trap.caught).toBe(0);
    } finally {
      await first.stop(true);
    }
  });
});
