// The start banner, and its curl line run by a real shell.

import { afterEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BannerOptions, renderBanner } from "./banner.ts";

const OPTIONS: BannerOptions = {
  version: "1.2.3",
  addresses: ["127.0.0.1:8080"],
  backends: [{ name: "demo", kind: "demo", url: "http://demo.invalid", how: "built in" }],
  model: "demo",
};

describe("the text", () => {
  test("of a start without configuration", () => {
    expect(renderBanner(OPTIONS)).toBe(
      [
        "Signalbox 1.2.3 listens on http://127.0.0.1:8080",
        "No configuration file; using what was found on this machine.",
        "Backends:",
        "  demo  the built-in demo model",
        "",
        "Try it:",
        `  curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' -d '{"model":"demo","messages":[{"role":"user","content":"Hello!"}]}'`,
        "",
      ].join("\n"),
    );
  });

  test("of a start with a file, several addresses and named backends", () => {
    const lines = renderBanner({
      ...OPTIONS,
      addresses: ["[::1]:80", "unix:/run/signalbox.sock"],
      configPath: "/etc/signalbox/config.yaml",
      backends: [
        { name: "openai", kind: "openai", url: "https://api.openai.com", how: "OPENAI_API_KEY" },
        { name: "gpu", kind: "vllm", url: "http://10.0.0.5:8000" },
      ],
    }).split("\n");
    expect(lines.slice(0, 5)).toEqual([
      "Signalbox 1.2.3 listens on http://[::1]:80 and unix:/run/signalbox.sock",
      "Configuration: /etc/signalbox/config.yaml",
      "Backends:",
      "  openai  https://api.openai.com (OPENAI_API_KEY)",
      "  gpu     http://10.0.0.5:8000 (vllm)",
    ]);
  });

  test("names what answers and is not recognised, with the line that uses it", () => {
    const unrecognised = [8000, 8080].map((port) => ({
      address: `127.0.0.1:${port}`,
      said: "lists no models",
      backend: { name: `local-${port}`, url: `http://127.0.0.1:${port}`, api_key: "${KEY}" },
    }));
    const lines = renderBanner({ ...OPTIONS, unrecognised }).split("\n");
    expect(lines.slice(3, 10)).toEqual([
      "  demo  the built-in demo model",
      "Not used, because it is not recognised:",
      "  127.0.0.1:8000 (lists no models)",
      "  127.0.0.1:8080 (lists no models)",
      "If that is a model server, this line in config.yaml uses it, beside other backends that you list there:",
      '  backends: [{name: "local-8000", url: "http://127.0.0.1:8000", api_key: "${KEY}"}, {name: "local-8080", url: "http://127.0.0.1:8080", api_key: "${KEY}"}]',
      "",
    ]);
  });

  test("stays short with many backends, and says so with none", () => {
    const backends = Array.from({ length: 40 }, (_, index) => ({
      name: `b${index}`,
      kind: "generic" as const,
      url: "http://x",
    }));
    expect(renderBanner({ ...OPTIONS, backends })).toContain("\n  b7  http://x (generic)\n  and 32 more\n");
    expect(renderBanner({ ...OPTIONS, backends: [] })).toContain("No backends yet");
  });

  test("has control characters only when colours are asked for", () => {
    const hostile = {
      ...OPTIONS,
      model: "m\u001b[31m\u009b\n",
      configPath: "/a\u001b[31m",
      backends: [{ name: "x", kind: "vllm" as const, url: "http://x/\u0007" }],
    };
    expect(renderBanner(hostile).replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
    expect(renderBanner({ ...OPTIONS, colour: true })).toContain("\u001b[1mSignalbox 1.2.3\u001b[22m");
  });
});

describe("the curl line, pasted into a shell", () => {
  const cleanUps: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  });

  interface Seen {
    method: string;
    path: string;
    contentType: string | null;
    authorization: string | null;
    body: string;
  }

  function serve(where: { hostname: string } | { unix: string }): { port: number; seen: Seen[] } {
    const seen: Seen[] = [];
    const handler = async (request: Request) => {
      seen.push({
        method: request.method,
        path: new URL(request.url).pathname,
        contentType: request.headers.get("content-type"),
        authorization: request.headers.get("authorization"),
        body: await request.text(),
      });
      return new Response("answered");
    };
    const server =
      "unix" in where
        ? Bun.serve({ unix: where.unix, fetch: handler })
        : Bun.serve({ port: 0, hostname: where.hostname, fetch: handler });
    cleanUps.push(() => server.stop(true));
    return { port: server.port ?? 0, seen };
  }

  async function paste(options: BannerOptions): Promise<string> {
    const command = renderBanner(options).trimEnd().split("\n").at(-1) as string;
    const child = Bun.spawn(["sh", "-c", command], {
      env: { PATH: process.env.PATH ?? "", API_KEY: "sk-secret" },
      stderr: "ignore",
    });
    const [output, exitCode] = await Promise.all([child.stdout.text(), child.exited]);
    expect(exitCode).toBe(0);
    return output;
  }

  test.each([
    ["127.0.0.1", "127.0.0.1"],
    ["0.0.0.0", "0.0.0.0"],
    ["localhost", "localhost"],
    ["::1", "[::1]"],
    ["::", "[::]"],
  ])("works for a listener on %s", async (hostname, host) => {
    const { port, seen } = serve({ hostname });
    expect(await paste({ ...OPTIONS, addresses: [`${host}:${port}`] })).toBe("answered");
    expect(seen).toEqual([
      {
        method: "POST",
        path: "/v1/chat/completions",
        contentType: "application/json",
        authorization: null,
        body: '{"model":"demo","messages":[{"role":"user","content":"Hello!"}]}',
      },
    ]);
  });

  test("works for a unix socket with blanks in its path", async () => {
    const folder = await mkdtemp(join(tmpdir(), "banner it's "));
    cleanUps.push(() => rm(folder, { recursive: true }));
    const socket = join(folder, "a socket");
    const { seen } = serve({ unix: socket });
    expect(await paste({ ...OPTIONS, addresses: [`unix:${socket}`] })).toBe("answered");
    expect(seen[0]?.path).toBe("/v1/chat/completions");
  });

  test.each(['it\'s $HOME `id` "x" \\ !', "org/name:tag", "m\u001b[31m\u009bü\n"])(
    "works for the model %j",
    async (model) => {
      const { port, seen } = serve({ hostname: "127.0.0.1" });
      await paste({ ...OPTIONS, addresses: [`127.0.0.1:${port}`], model });
      expect(JSON.parse(seen[0]?.body ?? "")).toMatchObject({ model });
    },
  );

  test("sends the key from API_KEY where one is needed", async () => {
    const { port, seen } = serve({ hostname: "127.0.0.1" });
    await paste({ ...OPTIONS, addresses: [`127.0.0.1:${port}`], apiKeyRequired: true });
    expect(seen[0]?.authorization).toBe("Bearer sk-secret");
  });

  test("lists the models when no chat model is known", async () => {
    const { port, seen } = serve({ hostname: "127.0.0.1" });
    const { model: _, ...withoutModel } = OPTIONS;
    await paste({ ...withoutModel, addresses: [`127.0.0.1:${port}`] });
    expect(seen[0]).toMatchObject({ method: "GET", path: "/v1/models" });
  });
});
