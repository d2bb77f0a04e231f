// What spans say alike: one of it for all of them, and nothing is held for what is too long.

import { expect, test } from "bun:test";
import type { Backend } from "../backends/backend.ts";
import { createAlikeSpans, type Traits } from "./attributes.ts";

const backend = { name: "a", rootUrl: "http://[::1]:8000", kind: { name: "vllm" } } as Backend;
const TRAITS: Traits = {
  kind: 2,
  operation: "chat",
  model: "m",
  stream: false,
  status: 200,
  failure: undefined,
  finish: undefined,
  isError: false,
  attempts: 1,
  method: "POST",
  path: "/v1/chat/completions",
  answeredBy: "m",
  cache: undefined,
  fallback: undefined,
  shared: false,
};

test("the same things make the same one, and each of them makes another one", () => {
  const alike = createAlikeSpans();
  const first = alike(backend, TRAITS);
  expect(alike(backend, { ...TRAITS })).toBe(first);
  const others: Partial<Traits>[] = [
    { kind: 3 },
    { operation: "embeddings" },
    { model: "n" },
    { stream: true },
    { status: 503 },
    { failure: "reset" },
    { finish: "stop" },
    { isError: true },
    { attempts: 2 },
    { method: "GET" },
    { path: "/v1/messages" },
    { answeredBy: "n" },
    { cache: "HIT" },
    { fallback: "error_code_429" },
    { shared: true },
  ];
  expect(others.length).toBe(Object.keys(TRAITS).length);
  const all = [first, ...others.map((other) => alike(backend, { ...TRAITS, ...other }))];
  all.push(alike(undefined, TRAITS), alike({ ...backend, name: "b" } as Backend, TRAITS));
  expect(new Set(all).size).toBe(all.length);
  for (const other of others) expect(all).toContain(alike(backend, { ...TRAITS, ...other }));
});

test("what is long is shortened and not held, and many do not stay", () => {
  const alike = createAlikeSpans();
  for (const long of ["model", "path", "finish", "failure"] as const) {
    const traits = { ...TRAITS, [long]: "x".repeat(5_000) };
    const made = alike(backend, traits);
    expect(alike(backend, traits)).not.toBe(made);
    expect(JSON.stringify(made).length).toBeLessThan(1_500);
  }
  const first = alike(backend, TRAITS);
  for (let each = 0; each < 100; each++) alike(backend, { ...TRAITS, status: 400 + each });
  for (let each = 0; each < 2_000; each++) alike(backend, { ...TRAITS, model: `m${each}` });
  const again = alike(backend, TRAITS);
  expect(again).not.toBe(first);
  expect(again).toEqual(first);
});
