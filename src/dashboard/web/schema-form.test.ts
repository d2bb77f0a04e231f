import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { mergePatch } from "../../config/change/merge-patch.ts";
import {
  changedBody,
  type FieldSchema,
  type FormField,
  fieldOfProblem,
  fieldValue,
  formFields,
  formTexts,
  withoutSecrets,
} from "./schema-form.ts";

const SCHEMA: FieldSchema = {
  type: "object",
  required: ["name"],
  properties: {
    name: { type: "string", description: "Unique." },
    type: { type: "string", enum: ["vllm", "llama-cpp", "llama.cpp"], default: "vllm" },
    weight: { type: "integer", minimum: 0, maximum: 100, default: 1 },
    models: { type: "array", items: { type: "string" } },
    scopes: { type: "array", items: { type: "string", enum: ["read", "write"] }, default: ["read"] },
    api_key: { type: "string" },
    enabled: { type: "boolean", default: true },
    expires_at: { type: "string", format: "date-time" },
    tls: {
      type: "object",
      description: "How it proves who it is.",
      properties: { ca: { type: "string" }, jitter: { type: "boolean" } },
    },
    statuses: { type: "array", items: { type: "integer" } },
    headers: { type: "object", default: {} },
  },
};

const fields = formFields(SCHEMA);
const fieldOf = (path: string) => fields.find((field) => field.path === path) as FormField;

describe("a form made from a schema", () => {
  test("has a field for each member, and for each member of objects", () => {
    expect(fields.map(({ path, kind, label }) => `${path}: ${kind} "${label}"`)).toEqual([
      'name: text "Name"',
      'type: choice "Type"',
      'weight: number "Weight"',
      'models: names "Models"',
      'scopes: choices "Scopes"',
      'api_key: secret "API key"',
      'enabled: flag "Enabled"',
      'expires_at: time "Expires at"',
      'tls.ca: text "CA"',
      'tls.jitter: flag "Jitter"',
      'statuses: names "Statuses"',
      'headers: json "Headers"',
    ]);
    expect(fieldOf("weight")).toMatchObject({ byDefault: 1, minimum: 0, maximum: 100, isWhole: true });
    expect(fieldOf("name")).toMatchObject({ isRequired: true, help: "Unique.", group: undefined });
    expect(fieldOf("tls.ca").group).toEqual({ label: "TLS", help: "How it proves who it is." });
  });

  test("offers each name in one spelling", () => {
    expect(fieldOf("type").options).toEqual(["vllm", "llama-cpp"]);
  });

  test("shows what an entry says beyond the defaults, and ticks what holds", () => {
    expect(formTexts(fields, {})).toMatchObject({ name: "", weight: "", scopes: "read", enabled: "true", headers: "" });
    const entry = {
      ...{ name: "a", type: "vllm", models: ["x", "y"], enabled: false, weight: 1, api_key: "********" },
      ...{ tls: { ca: "/ca.pem" }, headers: { a: "b" }, expires_at: "2026-03-01T12:00:00.000Z", user_id: null },
    };
    expect(formTexts(fields, entry)).toMatchObject({
      ...{ name: "a", type: "", models: "x, y", enabled: "false", weight: "", api_key: "********" },
      ...{ "tls.ca": "/ca.pem", headers: '{\n  "a": "b"\n}' },
    });
    const time = formTexts(fields, entry).expires_at as string;
    expect(time).toMatch(/^2026-0\d-\d\dT\d\d:\d\d:00$/);
    expect(fieldValue(fieldOf("expires_at"), time)).toEqual({ value: "2026-03-01T12:00:00.000Z" });
  });

  test("says what is wrong with a text, by the label of its field", () => {
    expect(fieldValue(fieldOf("weight"), "5")).toEqual({ value: 5 });
    for (const text of ["500", "1.5", "many"]) {
      const fault = "Weight must be a whole number, at least 0, at most 100.";
      expect(fieldValue(fieldOf("weight"), text)).toEqual({ fault });
    }
    expect(fieldValue(fieldOf("headers"), "{")).toEqual({ fault: "Headers is not valid JSON." });
    expect(fieldValue(fieldOf("name"), " ")).toEqual({ fault: "Name is required." });
    expect(fieldValue(fieldOf("statuses"), "200, 204")).toEqual({ value: [200, 204] });
    expect(fieldValue(fieldOf("statuses"), "200, ok")).toHaveProperty("fault");
  });

  test("makes a change of what is different; null removes", () => {
    const entry = {
      name: "a",
      weight: 3,
      models: ["x"],
      tls: { ca: "/ca.pem" },
      api_key: "********",
      headers: { a: "1" },
    };
    const before = formTexts(fields, entry);
    const after = { ...before, weight: "", models: "x, y", "tls.ca": "", enabled: "false", headers: '{"b": "2"}' };
    const { body, faults } = changedBody(fields, before, after);
    expect(body).toEqual({ weight: null, models: ["x", "y"], tls: null, enabled: false, headers: { a: null, b: "2" } });
    expect(faults.size).toBe(0);
    expect(changedBody(fields, before, before).body).toEqual({});
    expect(changedBody(fields, before, { ...before, api_key: "" }).body).toEqual({ api_key: null });
    expect([...changedBody(fields, before, { ...before, name: "" }).faults]).toEqual([["name", "Name is required."]]);
    const empty = formTexts(fields, {});
    expect(changedBody(fields, empty, { ...empty, name: "b", api_key: "sk-1" }).body).toEqual({
      name: "b",
      api_key: "sk-1",
    });
  });

  test("keeps what is typed into fields for secrets off the screen", () => {
    expect(withoutSecrets(fields, { name: "a", api_key: "sekret", tls: { ca: "x" } })).toEqual({
      ...{ name: "a", api_key: "…", tls: { ca: "x" } },
    });
    expect(withoutSecrets(fields, { api_key: null })).toEqual({ api_key: null });
  });

  test("knows the field that a problem belongs to", () => {
    expect(fieldOfProblem(fields, "models[0]")?.path).toBe("models");
    expect(fieldOfProblem(fields, "headers.x-a")?.path).toBe("headers");
    expect(fieldOfProblem(fields, "tls.ca")?.path).toBe("tls.ca");
    expect(fieldOfProblem(fields, "modelsx")).toBeUndefined();
  });
});

const word = fc.stringMatching(/^[a-z][a-z0-9/ ]{0,6}[a-z0-9]$/);
const entries = fc.record(
  {
    name: word,
    type: fc.constantFrom("vllm", "llama-cpp"),
    weight: fc.integer({ min: 0, max: 100 }),
    models: fc.array(word, { minLength: 1, maxLength: 3 }),
    scopes: fc.subarray(["read", "write"]),
    api_key: fc.constant("********"),
    enabled: fc.boolean(),
    expires_at: fc
      .integer({ min: 1_700_000_000, max: 1_900_000_000 })
      .map((seconds) => new Date(seconds * 1000).toISOString()),
    tls: fc.record({ ca: word, jitter: fc.boolean() }, { requiredKeys: [] }),
    statuses: fc.array(fc.integer({ min: 100, max: 599 }), { minLength: 1, maxLength: 3 }),
    headers: fc.dictionary(
      fc.constantFrom("a", "b", "__proto__", "c"),
      fc.oneof(word, fc.dictionary(fc.constantFrom("x", "y"), word)),
    ),
  },
  { requiredKeys: ["name"] },
);

test("an entry changed by the body shows what the form showed, whatever was there before", () => {
  fc.assert(
    fc.property(entries, entries, (entry, wanted) => {
      const before = formTexts(fields, entry);
      const after = formTexts(fields, wanted);
      const { body, faults } = changedBody(fields, before, after);
      expect([...faults]).toEqual([]);
      const changed = formTexts(fields, mergePatch(entry, body) as Record<string, unknown>);
      // Members of objects may stand in another order.
      expect(changedBody(fields, changed, after).body).toEqual({});
      expect({ ...changed, headers: "" }).toEqual({ ...after, headers: "" });
      // What did not change is not in the body.
      for (const field of fields.filter(({ path, group }) => group === undefined && before[path] === after[path])) {
        expect(Object.hasOwn(body, field.path)).toBe(false);
      }
    }),
  );
});
