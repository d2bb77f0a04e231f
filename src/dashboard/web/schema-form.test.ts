import { describe, expect, test } from "bun:test";
import { changedBody, type FieldSchema, type FormField, fieldText, fieldValue, formFields } from "./schema-form.ts";

const SCHEMA: FieldSchema = {
  type: "object",
  required: ["name"],
  properties: {
    name: { type: "string", description: "Unique." },
    type: { type: "string", enum: ["vllm", "ollama"], default: "vllm" },
    weight: { type: "integer", minimum: 0, maximum: 100, default: 1 },
    models: { type: "array", items: { type: "string" } },
    scopes: { type: "array", items: { type: "string", enum: ["read", "write"] }, default: ["read"] },
    api_key: { type: "string" },
    enabled: { type: "boolean", default: true },
    expires_at: { type: "string", format: "date-time" },
    tls: { type: "object", properties: { ca: { type: "string" } } },
    headers: { type: "object" },
  },
};

const fields = formFields(SCHEMA);
const fieldOf = (path: string) => fields.find((field) => field.path === path) as FormField;

describe("a form made from a schema", () => {
  test("has a field for each member, and for each member of objects", () => {
    expect(fields.map(({ path, kind }) => `${path}: ${kind}`)).toEqual([
      "name: text",
      "type: choice",
      "weight: number",
      "models: names",
      "scopes: choices",
      "api_key: secret",
      "enabled: flag",
      "expires_at: time",
      "tls.ca: text",
      "headers: json",
    ]);
    expect(fieldOf("weight")).toMatchObject({ placeholder: "1", minimum: 0, maximum: 100, isWhole: true });
    expect(fieldOf("scopes")).toMatchObject({ options: ["read", "write"], placeholder: "read" });
    expect(fieldOf("name")).toMatchObject({ isRequired: true, help: "Unique." });
  });

  test("shows what an entry says, but no secret", () => {
    const entry = {
      name: "a",
      models: ["x", "y"],
      api_key: "***",
      enabled: false,
      tls: { ca: "/ca.pem" },
      headers: { a: "b" },
    };
    const shown = Object.fromEntries(fields.map((field) => [field.path, fieldText(field, entry)]));
    expect(shown).toMatchObject({
      name: "a",
      type: "",
      models: "x, y",
      api_key: "",
      enabled: "false",
      "tls.ca": "/ca.pem",
    });
    expect(shown.headers).toBe('{\n  "a": "b"\n}');
  });

  test("says what is wrong with a text, by the name of its field", () => {
    expect(fieldValue(fieldOf("weight"), "5")).toEqual({ value: 5 });
    expect(fieldValue(fieldOf("weight"), "500")).toEqual({
      fault: "weight must be a whole number, at least 0, at most 100.",
    });
    expect(fieldValue(fieldOf("weight"), "1.5")).toEqual({
      fault: "weight must be a whole number, at least 0, at most 100.",
    });
    expect(fieldValue(fieldOf("headers"), "{")).toEqual({ fault: "headers is not valid JSON." });
    expect(fieldValue(fieldOf("name"), " ")).toEqual({ fault: "name is required." });
  });

  test("makes a change of what is different; null removes", () => {
    const before = { name: "a", weight: "3", models: "x", "tls.ca": "/ca.pem", api_key: "" };
    const after = { ...before, weight: "", models: "x, y", "tls.ca": "/new.pem", enabled: "false" };
    expect(changedBody(fields, before, after)).toEqual({
      body: { weight: null, models: ["x", "y"], tls: { ca: "/new.pem" }, enabled: false },
      faults: [],
    });
    expect(changedBody(fields, before, before)).toEqual({ body: {}, faults: [] });
    expect(changedBody(fields, before, { ...before, name: "" }).faults).toEqual(["name is required."]);
    expect(changedBody(fields, {}, { name: "b", api_key: "sk-1" }).body).toEqual({ name: "b", api_key: "sk-1" });
    expect(changedBody(fields, {}, {}).faults).toEqual(["name is required."]);
  });
});
