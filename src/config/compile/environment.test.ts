// Overrides from the environment, seen through a whole compilation.

import { describe, expect, test } from "bun:test";
import { formatPath } from "../values/values.ts";
import { compileDocument } from "./compile.ts";

function settingsOf(document: Record<string, unknown>, env: Record<string, string>) {
  const { settings, problems } = compileDocument(document, env);
  expect(problems).toEqual([]);
  return settings!;
}

function problemsOf(document: Record<string, unknown>, env: Record<string, string>) {
  return compileDocument(document, env).problems.map(({ path, message, variable }) => ({
    path: formatPath(path),
    message,
    variable,
  }));
}

describe("environment overrides", () => {
  test("beat the file and are typed by the schema", () => {
    const settings = settingsOf(
      { retry: { max_attempts: 2, jitter: true }, timeouts: { connect: "1s" } },
      {
        SIGNALBOX_RETRY__MAX_ATTEMPTS: "7",
        SIGNALBOX_RETRY__JITTER: "false",
        SIGNALBOX_TIMEOUTS__CONNECT: "2s",
        SIGNALBOX_ROUTING__MODEL_LIST_CACHE__SOFT_TTL_RATIO: "0.5",
      },
    );
    expect(settings.retry).toMatchObject({ max_attempts: 7, jitter: false });
    expect(settings.timeouts.connect).toBe(2000);
    expect(settings.routing.model_list_cache.soft_ttl_ratio).toBe(0.5);
  });

  test("reach list entries and can add them, in any order of definition", () => {
    const settings = settingsOf(
      { backends: [{ name: "a", url: "http://a" }] },
      {
        SIGNALBOX_BACKENDS__2__NAME: "c",
        SIGNALBOX_BACKENDS__0__URL: "http://other",
        SIGNALBOX_BACKENDS__1: '{"name": "b", "weight": 5}',
        SIGNALBOX_BACKENDS__2__MODELS: "x, y",
        "SIGNALBOX_BACKENDS__0__HEADERS__X-Team": "blue",
      },
    );
    expect(settings.backends).toMatchObject([
      { name: "a", url: "http://other", headers: { "X-Team": "blue" } },
      { name: "b", weight: 5 },
      { name: "c", models: ["x", "y"] },
    ]);
  });

  test("accept other spellings of a key, and keep the letter case of free keys", () => {
    const settings = settingsOf(
      { backends: [{ name: "a" }] },
      {
        SIGNALBOX_BACKENDS__0__KIND: "ollama",
        SIGNALBOX_ROUTING__STRATEGY: "random",
        SIGNALBOX_TIMEOUTS__MODELS__MyModel__REQUEST: "9s",
      },
    );
    expect(settings.backends[0]?.type).toBe("ollama");
    expect(settings.routing.selection_strategy).toBe("Random");
    expect(settings.timeouts.models).toEqual({ MyModel: { request: 9000 } });
  });

  test("turn a single address into a list", () => {
    const { server } = settingsOf({}, { SIGNALBOX_SERVER__BIND_ADDRESS: "a:1,[::1]:2" });
    expect(server.bind_address).toEqual(["a:1", "[::1]:2"]);
    expect(
      settingsOf({ server: { bind_address: "a:1" } }, { SIGNALBOX_SERVER__BIND_ADDRESS__0: "b:2" }).server.bind_address,
    ).toEqual(["b:2"]);
  });

  test("are no part of the document, and are not expanded", () => {
    const { document, settings } = compileDocument(
      { api_keys: { keys: [{ key: "${KEY}" }] } },
      { KEY: "from-variable", SIGNALBOX_API_KEYS__KEYS__0__KEY: "literal-${HOME}" },
    );
    expect(document).toEqual({ api_keys: { keys: [{ key: "${KEY}" }] } });
    expect(settings?.api_keys.keys[0]?.key).toBe("literal-${HOME}");
  });

  test("names without a double underscore are not overrides", () => {
    settingsOf(
      {},
      {
        SIGNALBOX_PORT: "tcp://10.0.0.1:80",
        SIGNALBOX_SERVICE_HOST: "10.0.0.1",
        SIGNALBOX_PORT_8080_TCP_ADDR: "10.0.0.1",
        SIGNALBOX__X: "1",
        SERVER__BIND_ADDRESS: "x",
      },
    );
  });

  test.each([
    ["SIGNALBOX_SERVR__BIND_ADDRESS", "x", "", "unknown section SERVR; did you mean SERVER?"],
    ["SIGNALBOX_LOGGING__LEVL", "x", "logging", "unknown key LEVL; did you mean LEVEL?"],
    ["SIGNALBOX_LOGGING__ZZZZZZZZ", "x", "logging", "unknown key ZZZZZZZZ; known are LEVEL, FORMAT, ACCESS_LOG"],
    ["SIGNALBOX_LOGGING__", "x", "logging", "unknown key ; known are LEVEL, FORMAT, ACCESS_LOG"],
    ["SIGNALBOX_LOGGING__LEVEL__X", "x", "logging.level", "has no keys, so that X means nothing"],
    [
      "SIGNALBOX_BACKENDS__FIRST__URL",
      "x",
      "backends",
      "expected the number of a list entry in place of FIRST, such as 0 for the first",
    ],
    [
      "SIGNALBOX_BACKENDS__1__URL",
      "x",
      "backends[1].url",
      "leaves a gap: the list has 0 entries, the next is number 0",
    ],
    ["SIGNALBOX_RETRY__JITTER", "maybe", "retry.jitter", "expected true or false, found a string"],
    ["SIGNALBOX_RETRY__MAX_ATTEMPTS", "0", "retry.max_attempts", "must be at least 1"],
  ])("%s=%s is a problem of that variable", (variable, value, path, message) => {
    expect(problemsOf({}, { [variable]: value })).toEqual([{ path, message, variable }]);
  });

  test("do not hide a wrong value of the file around them", () => {
    expect(problemsOf({ retry: 7 }, { SIGNALBOX_RETRY__JITTER: "true" })).toMatchObject([
      { path: "retry", message: "expected a mapping, found a number" },
    ]);
  });
});
