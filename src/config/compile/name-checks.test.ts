// Names that are given twice and names of nothing: what is found, where, and what is not told.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { formatPath } from "../values/values.ts";
import { nameProblems } from "./name-checks.ts";
import { prepareDocument } from "./prepare.ts";

const told = (document: Record<string, unknown>) =>
  nameProblems(document).map(({ path, message }) => `${formatPath(path)} ${message}`);

test("every list of names tells the places of those that stood before", () => {
  expect(
    told({
      server: { bind_address: ["h:1", "h:0", "h:0", "h:1"] },
      backends: [{ name: "a" }, { name: "b", model_configs: [{ id: "m" }, {}, { id: "m" }] }, 7, { name: "a" }],
      api_keys: { keys: [{ key: "k1", previous: { key: "k0" } }, null, { key: "k0", id: "i" }, { id: "i" }] },
    }),
  ).toEqual([
    "server.bind_address[3] is the same address as server.bind_address[0]",
    'backends[3].name "a" is already the name of backends[0]',
    'backends[1].model_configs[2].id "m" is already the id of model_configs[0]',
    "api_keys.keys[2].key is the same key as the 1st of the 4 keys",
    "api_keys.keys[3].id is the same id as that of the 3rd of the 4 keys",
  ]);
});

test("names of backends are looked up wherever they are used, if every backend's name is known", () => {
  const uses = {
    circuit_breaker: { backends: { gpu: {}, gpo: {} } },
    global_prompts: { backends: { other: {} } },
    kv_cache_index: { event_sources: [{ backend_name: "gpu" }, { backend_name: "none" }, {}] },
  };
  expect(told({ ...uses, backends: [{ name: "gpu" }, { name: "gpu2" }] })).toEqual([
    'circuit_breaker.backends.gpo there is no backend of this name; did you mean "gpu"?',
    "global_prompts.backends.other there is no backend of this name",
    "kv_cache_index.event_sources[1].backend_name there is no backend of this name",
  ]);
  expect(told(uses)).toHaveLength(5);
  for (const backends of [[{ name: "gpu" }, {}], [{ name: "${NAME}" }], "gpu", { gpu: {} }, [null]]) {
    expect(told({ ...uses, backends })).toEqual([]);
  }
});

test("a document of any form is read", () => {
  const sections = ["server", "backends", "api_keys", "circuit_breaker", "global_prompts", "kv_cache_index"];
  const keys = ["bind_address", "name", "backends", "keys", "key", "id", "previous", "event_sources", "model_configs"];
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(null, true, 1, "a", "b"),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...keys), tie("value"), { maxKeys: 3 }),
    ),
  }));
  const document = fc.dictionary(fc.constantFrom(...sections), value, { maxKeys: 4 });
  fc.assert(
    fc.property(document, (input) => {
      for (const { path } of nameProblems(input)) expect(path.length).toBeGreaterThan(2);
    }),
  );
});

test("what a refused section holds is compared with nothing", async () => {
  const document = {
    backends: [{ name: "a" }, { name: "${NAME}" }],
    api_keys: { keys: [{ key: "guessed-1" }, { key: "${SECRET}" }, { key: "guessed-2" }] },
    circuit_breaker: { backends: { guess: {} } },
  };
  const surroundings = {
    env: { SECRET: "guessed-2", NAME: "a" },
    home: undefined,
    checks: [],
    readers: [],
    baseDir: "/",
  };
  const problemsWith = async (refused: (string | number)[][]) => {
    const problems = refused.map((path) => ({ path, message: "refused" }));
    const prepared = await prepareDocument(document, { ...surroundings, problems });
    return prepared.crossProblems.map(({ path }) => formatPath(path));
  };
  expect(await problemsWith([])).toEqual([
    "backends[1].name",
    "api_keys.keys[2].key",
    "circuit_breaker.backends.guess",
  ]);
  expect(await problemsWith([["api_keys", "keys", 1, "key"]])).toEqual([
    "backends[1].name",
    "circuit_breaker.backends.guess",
  ]);
  expect(await problemsWith([["backends", 1, "name"]])).toEqual(["api_keys.keys[2].key"]);
  expect(await problemsWith([[]])).toEqual([]);
});

test("no budget has the name that the limit of tokens of another key or organization has", () => {
  const carriers = [
    { id: "a:tokens", budget: {} },
    { id: "b:tokens" },
    { id: "c", budget: {} },
    { id: "d:tokens", budget: null },
  ];
  expect(told({ api_keys: { keys: carriers }, organizations: carriers })).toEqual([
    'api_keys.keys[0].id must not end in ":tokens" beside a budget: a token_limit has its name',
    'organizations[0].id must not end in ":tokens" beside a budget: a token_limit has its name',
  ]);
});
