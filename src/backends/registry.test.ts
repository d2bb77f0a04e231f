import { describe, expect, test } from "bun:test";
import { manualDrains } from "../../test/support/manual-drains.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { toBackend } from "./backend.ts";
import { BACKEND_KINDS } from "./kinds.ts";
import { type BackendRegistry, createRegistry } from "./registry.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

function registryOf(backends: BackendInput[], checksEnabled = true): BackendRegistry {
  const settings = documentSchema.parse({ backends: backends.map((each) => ({ url: "http://h", ...each })) });
  return createRegistry(settings.backends.map(toBackend), { checksEnabled, drains: manualDrains().drains });
}

function names(entries: readonly { backend: { name: string } }[]): string[] {
  return entries.map((entry) => entry.backend.name);
}

test("other authorities are other facts of the same server", () => {
  const at = (tls: object) => ({ name: "a", url: "https://10.0.0.1", tls });
  const registry = registryOf([at({ ca: "a.pem" })]);
  const { backends } = documentSchema.parse({ backends: [at({ ca: "b.pem", server_name: "engine.internal" })] });
  const { added, removed, changed } = registry.replace(backends.map(toBackend), true);
  expect([added, removed, changed.map(({ after }) => after.name)]).toEqual([[], [], ["a"]]);
  expect(registry.backend("a").settings.tls).toEqual({ ca: "b.pem", server_name: "engine.internal" });
});

describe("boards", () => {
  test("a change makes a new board with the next version; the old one stays as it was", () => {
    const registry = registryOf([{ name: "a" }]);
    registry.setModels("a", ["m"]);
    const before = registry.current;
    registry.setHealth("a", "ready");
    const after = registry.current;
    expect(after.version).toBe(before.version + 1);
    expect(before.entries[0]?.available).toBe(false);
    expect(before.candidates("m")).toEqual([]);
    expect(names(after.candidates("m"))).toEqual(["a"]);
  });

  test("facts that are known already publish nothing", () => {
    const registry = registryOf([{ name: "a" }]);
    registry.setHealth("a", "ready");
    registry.setModels("a", ["m", "n"]);
    const board = registry.current;
    registry.setHealth("a", "ready");
    registry.setModels("a", ["m", "n"]);
    registry.setKind("a", BACKEND_KINDS.generic);
    registry.setHeld("a", false);
    expect(registry.current).toBe(board);
  });

  test("counters are shared by all boards, entries of unchanged backends too", () => {
    const registry = registryOf([{ name: "a" }, { name: "b" }]);
    const before = registry.current;
    registry.setHealth("a", "ready");
    registry.current.entries[0]!.counters.inFlight = 7;
    expect(before.entries[0]?.counters.inFlight).toBe(7);
    expect(registry.current.entries[1]).toBe(before.entries[1]!);
  });

  test("an unknown name is a bug", () => {
    expect(() => registryOf([]).setHealth("nobody", "ready")).toThrow("nobody");
  });
});

describe("candidates", () => {
  test("configuration order, the same array on one board, standbys included", () => {
    const registry = registryOf([{ name: "c", weight: 0 }, { name: "a" }, { name: "b" }]);
    for (const name of ["b", "a", "c"]) {
      registry.setModels(name, ["m"]);
      registry.setHealth(name, "ready");
    }
    const board = registry.current;
    expect(names(board.candidates("m"))).toEqual(["c", "a", "b"]);
    expect(board.candidates("m")).toBe(board.candidates("m"));
    expect(board.candidates("unknown")).toBe(board.candidates("also unknown"));
  });

  test("backends that are not available serve still, but are no candidates", () => {
    const registry = registryOf([{ name: "a" }, { name: "b", enabled: false }, { name: "c" }]);
    for (const name of ["a", "b", "c"]) registry.setModels(name, ["m"]);
    for (const name of ["a", "b"]) registry.setHealth(name, "ready");
    registry.setHealth("c", "unhealthy");
    expect(names(registry.current.candidates("m"))).toEqual(["a"]);
    expect(names(registry.current.serving("m"))).toEqual(["a", "b", "c"]);
  });

  test("without health checks every enabled backend is available", () => {
    const registry = registryOf([{ name: "a" }, { name: "b", enabled: false }], false);
    expect(registry.current.entries.map((entry) => entry.available)).toEqual([true, false]);
  });

  test("a held backend is not available, however healthy", () => {
    const registry = registryOf([{ name: "a" }]);
    registry.setHealth("a", "ready");
    registry.setHeld("a", true);
    expect(registry.current.entries[0]?.available).toBe(false);
    registry.setHeld("a", false);
    expect(registry.current.entries[0]?.available).toBe(true);
  });

  test.each(["__proto__", "constructor", "org/name", "a b", "/models/x.gguf", "toString"])(
    "an id such as %p is ordinary",
    (id) => {
      const registry = registryOf([{ name: "a" }]);
      registry.setHealth("a", "ready");
      expect(registry.current.candidates(id)).toEqual([]);
      registry.setModels("a", [id]);
      expect(names(registry.current.candidates(id))).toEqual(["a"]);
    },
  );
});

describe("Ollama's tags", () => {
  test.each([
    ["llama3:latest", "llama3", true],
    ["llama3", "llama3:latest", true],
    ["host:5000/llama3", "host:5000/llama3:latest", true],
    ["llama3:8b", "llama3", false],
    ["llama3", "llama3:8b", false],
  ])("listed %s, requested %s: %p", (listed, requested, isFound) => {
    const registry = registryOf([{ name: "o", type: "ollama" }]);
    registry.setHealth("o", "ready");
    registry.setModels("o", [listed]);
    expect(registry.current.candidates(requested).length > 0).toBe(isFound);
    expect(registry.current.candidates(listed).length).toBe(1);
  });

  test("mean something for Ollama only", () => {
    const registry = registryOf([{ name: "v", type: "vllm" }]);
    registry.setHealth("v", "ready");
    registry.setModels("v", ["llama3:latest"]);
    expect(registry.current.candidates("llama3")).toEqual([]);
  });
});
