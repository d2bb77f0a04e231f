// Edits of the configuration file while the gateway runs: they are in force at once, and no stream that runs is cut.

import { describe, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { readChat } from "../support/chat-reading.ts";
import { expectError } from "../support/expect-error.ts";
import type { FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import type { GatewayParts } from "../support/gateway-parts.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { chatStream, failure } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();

const WORDS = ["one ", "two ", "three"];
const REFUSED = "the edited configuration is refused; the running one stays";

const at = (name: string, backend: FakeBackend, model = "m") => ({ name, url: backend.url, models: [model] });

/** Writes beside the file and renames, as most editors do. */
function replaceAtomically(path: string, text: string): void {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

/** Asks again and again until the answer is as wanted: from then on the edit is in force. */
async function untilAnswer(
  what: string,
  ask: () => Promise<Response>,
  isWanted: (response: Response, text: string) => boolean,
): Promise<void> {
  let last = "";
  await waitFor(
    what,
    async () => {
      const response = await ask();
      const text = await response.text();
      last = `${response.status} ${text}`;
      return isWanted(response, text);
    },
    { explain: () => last.slice(0, 500) },
  );
}

const logged = (gateway: Gateway, message: string) =>
  gateway.printed.logEntries.filter((entry) => String(entry.msg).includes(message));

async function untilLogged(gateway: Gateway, message: string, count = 1): Promise<Record<string, unknown>> {
  const entry = await waitFor(`the log says "${message}"`, () => logged(gateway, message)[count - 1], {
    explain: () => gateway.printed.stderr,
  });
  return entry;
}

interface ReloadStatus {
  file: { path: string; reloads: number; failures: number } | null;
  last_error: { file: string; problems: string[] } | null;
  version: number;
}

async function reloadStatus(gateway: Gateway): Promise<ReloadStatus> {
  const response = await gateway.fetch("/admin/config/hot-reload-status");
  expect(response.status).toBe(200);
  return (await response.json()) as ReloadStatus;
}

/** The value of a series of /metrics. */
async function metric(gateway: Gateway, series: string): Promise<number> {
  const response = await gateway.fetch("/metrics");
  expect(response.status).toBe(200);
  const line = (await response.text()).split("\n").find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1));
}

describe("a new backend serves within two seconds of the edit", () => {
  const edits: [string, (gateway: Gateway, config: ConfigDocument) => void][] = [
    ["in place", (gateway, config) => gateway.writeConfig(config)],
    ["by a rename", (gateway, config) => replaceAtomically(gateway.configPath, gateway.configText(config))],
  ];
  test.each(edits)("%s", async (_way, edit) => {
    const [first, second] = [bed.backend(), bed.backend({ models: ["n"] })];
    await using gateway = await startGateway({ config: { backends: [at("first", first)] } });
    await expectError(await gateway.chat({ model: "n" }), 404);

    const { name, url } = at("second", second, "n");
    edit(gateway, { backends: [at("first", first), { name, url }] });
    await untilAnswer(
      "the new backend answers",
      () => gateway.chat({ model: "n" }),
      ({ status, headers }) => status === 200 && headers.get("x-signalbox-backend") === "second",
    );
    expect((await gateway.chat()).headers.get("x-signalbox-backend")).toBe("first");
    expect((await gateway.backend("second")).is_healthy).toBe(true);
    expect(await untilLogged(gateway, "configuration changed")).toMatchObject({
      version: 2,
      source: "file_reload",
      sections: ["backends"],
    });
  });

  test("by the swap of a symbolic link, as Kubernetes does it", async () => {
    const backends = [bed.backend(), bed.backend(), bed.backend()];
    const configOf = (count: number): ConfigDocument => ({
      backends: backends.slice(0, count).map((backend, index) => at(`b${index}`, backend, `m${index}`)),
    });
    await using gateway = await startGateway({ config: configOf(1) });
    await gateway.stop();
    const mount = (count: number) => {
      mkdirSync(join(gateway.folder, `..${count}`));
      writeFileSync(join(gateway.folder, `..${count}`, "gateway.yaml"), gateway.configText(configOf(count)));
      symlinkSync(`..${count}`, join(gateway.folder, "..data_tmp"));
      renameSync(join(gateway.folder, "..data_tmp"), join(gateway.folder, "..data"));
    };
    mount(1);
    unlinkSync(gateway.configPath);
    symlinkSync(join("..data", "gateway.yaml"), gateway.configPath);
    await gateway.restart();

    for (const count of [2, 3]) {
      mount(count);
      rmSync(join(gateway.folder, `..${count - 1}`), { recursive: true });
      const asked = { model: `m${count - 1}` };
      await untilAnswer(
        "the new backend answers",
        () => gateway.chat(asked),
        ({ status }) => status === 200,
      );
    }
    expect((await gateway.backends()).map(({ name }) => name)).toEqual(["b0", "b1", "b2"]);
  });
});

type Start = (parts: GatewayParts) => Promise<Gateway>;

/** A gateway with a stream that runs while the test goes on, and that must arrive whole at the end. */
async function duringStream(
  config: ConfigDocument,
  body: (parts: { gateway: Gateway; backend: FakeBackend }) => Promise<void>,
  { files = {}, key, start = startGateway }: { files?: Record<string, string>; key?: string; start?: Start } = {},
): Promise<void> {
  const goOn = Promise.withResolvers<void>();
  const backend = bed.backend();
  backend.queue(chatStream(WORDS, {}, { beforeChunk: (index) => (index === 2 ? goOn.promise : undefined) }));
  await using gateway = await start({ config: { backends: [at("a", backend)], ...config }, files });
  const headers: Record<string, string> = key === undefined ? {} : { Authorization: `Bearer ${key}` };
  const running = await gateway.chat({ stream: true }, { headers });
  await body({ gateway, backend });
  expect((await gateway.backends()).reduce((sum, { in_flight }) => sum + in_flight, 0)).toBe(1);
  goOn.resolve();
  expect(await within("the stream ends", readChat(running))).toMatchObject({
    text: WORDS.join(""),
    finishReasons: ["stop"],
    done: 1,
    errors: [],
  });
  await gateway.waitUntilIdle();
}

describe("edits are in force for new requests while a stream goes on", () => {
  test("a removed backend finishes its stream and gets nothing new", () =>
    duringStream({}, async ({ gateway, backend }) => {
      const other = bed.backend();
      gateway.writeConfig({ backends: [at("b", other)] });
      await untilAnswer(
        "the other backend answers",
        () => gateway.chat(),
        ({ headers }) => headers.get("x-signalbox-backend") === "b",
      );
      const rows = (await gateway.backends()).map(({ name, phase, in_flight }) => ({ name, phase, in_flight }));
      expect(rows).toContainEqual({ name: "a", phase: "draining", in_flight: 1 });
      const before = backend.requests.length;
      for (let count = 0; count < 10; count++) expect((await gateway.chat()).status).toBe(200);
      expect(backend.requests.length).toBe(before);
    }));

  test("the last backend too: the list is empty, and it comes back", () =>
    duringStream({}, async ({ gateway, backend }) => {
      gateway.writeConfig({ backends: [] });
      await untilAnswer(
        "nothing is left",
        () => gateway.chat(),
        ({ status }) => status === 503,
      );
      expect((await (await gateway.fetch("/v1/models")).json()) as { data: unknown[] }).toMatchObject({ data: [] });
      gateway.writeConfig({ backends: [at("a", backend)] });
      await untilAnswer(
        "it is back",
        () => gateway.chat(),
        ({ status }) => status === 200,
      );
    }));

  test("rate limits", () =>
    duringStream({}, async ({ gateway, backend }) => {
      const backends = [at("a", backend)];
      const per_client = { requests_per_second: 1, burst_capacity: 1 };
      gateway.writeConfig({ backends, rate_limiting: { enabled: true, limits: { per_client } } });
      await untilAnswer(
        "the limit holds",
        () => gateway.chat(),
        ({ status }) => status === 429,
      );
      gateway.writeConfig({ backends, rate_limiting: { enabled: false } });
      await untilAnswer(
        "it no longer holds",
        () => gateway.chat(),
        ({ status }) => status === 200,
      );
      for (let count = 0; count < 5; count++) expect((await gateway.chat()).status).toBe(200);
    }));

  test("aliases of models", () =>
    duringStream({}, async ({ gateway, backend }) => {
      const ask = () => {
        const messages = [{ role: "user", content: "hi" }];
        return gateway.post("/v1/messages", { model: "claude-haiku-4-5", max_tokens: 9, messages });
      };
      expect((await ask()).status).toBe(404);
      gateway.writeConfig({ backends: [at("a", backend)], model_aliases: { haiku: "m" } });
      await untilAnswer("the alias leads to m", ask, ({ status }) => status === 200);
      expect(backend.lastRequest.json()).toMatchObject({ model: "m" });
    }));

  test("fallback chains", () =>
    duringStream({}, async ({ gateway, backend }) => {
      const [broken, ask] = [bed.backend({ answer: failure(500) }), () => gateway.chat({ model: "n" })];
      const backends = [at("a", backend), at("broken", broken, "n")];
      gateway.writeConfig({ backends });
      await untilAnswer("the broken backend is asked", ask, ({ status }) => status === 500);
      gateway.writeConfig({ backends, fallback: { enabled: true, fallback_chains: { n: ["m"] } } });
      await untilAnswer("m stands in", ask, ({ status, headers }) => {
        return status === 200 && headers.get("x-fallback-model") === "m";
      });
    }));

  test("a prompt file that is edited, and another one that is named", () =>
    duringStream(
      { global_prompts: { default_file: "house.md" } },
      async ({ gateway, backend }) => {
        const seen = async () => {
          expect((await gateway.chat()).status).toBe(200);
          return backend.lastRequest.json<{ messages: { content: string }[] }>().messages[0]?.content;
        };
        expect(await seen()).toBe("Be brief.");
        replaceAtomically(join(gateway.folder, "prompts", "house.md"), "Be kind.\n");
        await waitFor("the edited prompt is sent", async () => (await seen()) === "Be kind.");
        // The file goes away: the prompt that was read stays.
        unlinkSync(join(gateway.folder, "prompts", "house.md"));
        await untilLogged(gateway, "could not be followed");
        expect(await seen()).toBe("Be kind.");
        const global_prompts = { default_file: "other.md" };
        gateway.writeConfig({ backends: [at("a", backend)], global_prompts });
        await waitFor("the other prompt is sent", async () => (await seen()) === "Be quick.");
      },
      { files: { "prompts/house.md": "Be brief.\n", "prompts/other.md": "Be quick.\n" } },
    ));

  test("keys: one is added, another taken away", () => {
    const keys = [{ key: "sk-sekret-first" }, { key: "sk-sekret-second" }];
    return duringStream(
      { api_keys: { mode: "blocking", keys: keys.slice(0, 1) } },
      async ({ gateway, backend }) => {
        const askWith = (index: number) => () =>
          gateway.chat({}, { headers: { Authorization: `Bearer ${keys[index]?.key}` } });
        await expectError(await askWith(1)(), 401);
        gateway.writeConfig({ backends: [at("a", backend)], api_keys: { mode: "blocking", keys: keys.slice(1) } });
        await untilAnswer("the new key is known", askWith(1), ({ status }) => status === 200);
        await expectError(await askWith(0)(), 401);
        await expectError(await gateway.chat(), 401);
      },
      { key: "sk-sekret-first" },
    );
  });

  test("a file of keys", () => {
    const fileOf = (key: string) => `keys: [{key: ${key}}]\n`;
    return duringStream(
      { api_keys: { mode: "blocking", api_keys_file: "keys.yaml" } },
      async ({ gateway }) => {
        const ask = () => gateway.chat({}, { headers: { Authorization: "Bearer sk-sekret-second" } });
        await expectError(await ask(), 401);
        replaceAtomically(join(gateway.folder, "keys.yaml"), fileOf("sk-sekret-second"));
        await untilAnswer("the new key is known", ask, ({ status }) => status === 200);
      },
      { files: { "keys.yaml": fileOf("sk-sekret-first") }, key: "sk-sekret-first" },
    );
  });

  test("retries", () => {
    const retry = { max_attempts: 1, base_delay: "1ms" };
    return duringStream({ retry }, async ({ gateway, backend }) => {
      const ask = async () => {
        backend.reset();
        backend.queue(failure(503));
        return await gateway.chat();
      };
      await expectError(await ask(), 503);
      gateway.writeConfig({ backends: [at("a", backend)], retry: { ...retry, max_attempts: 2 } });
      await untilAnswer("it is tried again", ask, ({ status }) => status === 200);
    });
  });

  test("the response cache", () =>
    duringStream({}, async ({ gateway, backend }) => {
      const ask = () => gateway.chat({ temperature: 0 });
      gateway.writeConfig({ backends: [at("a", backend)], response_cache: { enabled: true } });
      await untilAnswer("a kept answer", ask, ({ headers }) => headers.get("x-cache") === "HIT");
      const before = backend.requests.length;
      // A change elsewhere does not empty it.
      gateway.writeConfig({
        backends: [at("a", backend)],
        response_cache: { enabled: true },
        retry: { max_attempts: 7 },
      });
      await untilLogged(gateway, "configuration changed", 2);
      expect((await ask()).headers.get("x-cache")).toBe("HIT");
      expect(backend.requests.length).toBe(before);
    }));

  test("the level and the format of the log", () => {
    const body = async ({ gateway, backend }: { gateway: Gateway; backend: FakeBackend }) => {
      await (await gateway.chat()).text();
      expect(gateway.printed.stderr).toBe("");
      gateway.writeConfig({ backends: [at("a", backend)], logging: { level: "info" } });
      await waitFor("requests are logged", async () => {
        await (await gateway.chat()).text();
        return gateway.printed.logEntries.some(({ path }) => path === "/v1/chat/completions");
      });
      gateway.writeConfig({ backends: [at("a", backend)], logging: { format: "text" } });
      await waitFor("lines are no JSON", async () => {
        await (await gateway.chat()).text();
        return gateway.printed.stderrLines.some((line) => !line.startsWith("{"));
      });
    };
    // Only a process writes in other formats.
    return duringStream({ logging: { level: "error" } }, body, { start: startGatewayProcess });
  });
});

describe("what needs a restart", () => {
  test("is told, and in force after it", async () => {
    const backend = bed.backend();
    await using gateway = await startGateway({ config: { backends: [at("a", backend)] } });
    const socket = join(gateway.folder, "signalbox.sock");
    const bind_address = ["127.0.0.1:0", `unix:${socket}`];
    gateway.writeConfig({ backends: [at("a", backend, "other")], server: { bind_address } });
    expect(await untilLogged(gateway, "takes effect after a restart")).toMatchObject({
      level: "warn",
      field: "server.bind_address",
    });
    // The rest of the same edit does not wait.
    await untilAnswer(
      "the other model",
      () => gateway.chat({ model: "other" }),
      ({ status }) => status === 200,
    );
    await expect(fetch("http://gateway/health", { unix: socket })).rejects.toThrow();
    await gateway.restart();
    expect((await fetch("http://gateway/health", { unix: socket })).status).toBe(200);
  });
});

describe("a broken file is refused, and the running configuration stays", () => {
  const mistakes: [string, string | Uint8Array, RegExp][] = [
    ["syntax", "backends:\n  - {name: a, url: 'http://sekret'\nretry: {}\n", /^line 3: /],
    ["a wrong value", "\nretry: {max_attempts: sekret}\n", /^line 2: retry\.max_attempts: /],
    ["an unknown key", "\n\nretry: {max_atempts: 2}\n", /^line 3: .*did you mean `max_attempts`/],
    ["an unknown section", "retri: {}\n", /did you mean `retry`/],
    ["a section that contradicts another", "backends: [{name: a, url: 'http://x'}, {name: a, url: 'http://y'}]\n", /a/],
    ["a variable that is not set", "server: {data_dir: '${NOT_SET}'}\n", /NOT_SET/],
    ["a key twice", "retry: {max_attempts: 1}\nretry: {max_attempts: 2}\n", /^line 2: /],
    ["no text", Buffer.from([0x72, 0xff, 0xfe]), /UTF-8/],
    [
      "a missing prompt file",
      "global_prompts: {default_file: gone.md}\n",
      /^line 1: global_prompts\.default_file: there is no such/,
    ],
  ];

  test("whatever is wrong with it", async () => {
    const backend = bed.backend();
    const config = { backends: [at("a", backend, "first")] };
    await using gateway = await startGateway({ config, files: { "prompts/other.md": "Be brief." } });
    let refusals = 0;
    const isInForce = async () => expect((await gateway.chat({ model: "first" })).status).toBe(200);
    for (const [what, content, reason] of mistakes) {
      writeFileSync(gateway.configPath, content);
      const { level, file, problems } = await untilLogged(gateway, REFUSED, ++refusals);
      expect([what, level, file]).toEqual([what, "error", gateway.configPath]);
      expect((problems as string[])[0]).toMatch(reason);
      const status = await reloadStatus(gateway);
      expect(status.last_error).toMatchObject({ file: gateway.configPath, problems });
      expect(status.file).toMatchObject({ reloads: 0, failures: refusals });
      expect(status.version).toBe(1);
      await isInForce();
    }
    unlinkSync(gateway.configPath);
    expect(await untilLogged(gateway, REFUSED, ++refusals)).toMatchObject({
      problems: ["cannot be read: there is no such file"],
    });
    await isInForce();
    expect(logged(gateway, "configuration changed")).toEqual([]);

    gateway.writeConfig({ backends: [at("a", backend, "second")] });
    const ask = () => gateway.chat({ model: "second" });
    await untilAnswer("the repaired file", ask, ({ status }) => status === 200);
    // Versions have no gap for what was refused.
    expect(await untilLogged(gateway, "configuration changed")).toMatchObject({ version: 2 });
    await expectError(await gateway.chat({ model: "first" }), 404);
    expect(await reloadStatus(gateway)).toMatchObject({ last_error: null, version: 2 });
  });

  test("the metrics say so, until it is repaired", async () => {
    await using gateway = await startGateway({ config: { backends: [{ name: "a", type: "demo" }] } });
    const isOk = () => metric(gateway, "signalbox_config_last_reload_successful");
    expect([await isOk(), await metric(gateway, "signalbox_config_version")]).toEqual([1, 1]);
    writeFileSync(gateway.configPath, "retry: {");
    await untilLogged(gateway, REFUSED);
    expect(await isOk()).toBe(0);
    expect(await metric(gateway, 'signalbox_config_reloads_total{result="failure"}')).toBe(1);
    gateway.writeConfig({ backends: [{ name: "a", type: "demo" }], retry: { max_attempts: 7 } });
    await waitFor("the file is good again", async () => (await isOk()) === 1);
    expect(await metric(gateway, "signalbox_config_version")).toBe(2);
  });

  test("put back as it was, it undoes nothing that was changed through the admin API", async () => {
    const backend = bed.backend();
    const config = { backends: [at("a", backend)], retry: { max_attempts: 1, base_delay: "1ms" } };
    await using gateway = await startGateway({ config });
    const headers = { "Content-Type": "application/json" };
    const change = { method: "PATCH", headers, body: JSON.stringify({ max_attempts: 2 }) };
    expect((await gateway.fetch("/admin/config/retry", change)).status).toBe(200);
    writeFileSync(gateway.configPath, "retry: {");
    await untilLogged(gateway, REFUSED);
    gateway.writeConfig(config);
    await waitFor("the file is good again", async () => (await reloadStatus(gateway)).last_error === null);
    expect((await reloadStatus(gateway)).version).toBe(2);
    backend.queue(failure(503));
    expect((await gateway.chat()).status).toBe(200);
  });
});
