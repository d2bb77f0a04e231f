// Built-in hook: checks that an answer is the JSON that its request asks for, and has the model repair it once.

import { z } from "zod";
import { isObject, type JsonObject, parseJson } from "../../lib/json.ts";
import { defineHook, pass, refuse, repair } from "../define.ts";
import { booleanIn, checkNames } from "./option-fields.ts";

interface SchemaOptions {
  schema: JsonObject | undefined;
  repairs: boolean;
}

const MAX_PROBLEMS = 5;

/** What is wrong with a text as JSON of a schema; undefined: nothing. */
export function schemaProblem(text: string, schema: JsonObject): string | undefined {
  const value = parseJson(text.trim());
  if (value === undefined) return "it is not valid JSON";
  const checked = z.fromJSONSchema(schema).safeParse(value);
  if (checked.success) return undefined;
  const problems = checked.error.issues.slice(0, MAX_PROBLEMS);
  return problems.map(({ path, message }) => `${path.join(".") || "the value"}: ${message}`).join("; ");
}

export default defineHook<SchemaOptions>({
  options(given) {
    checkNames(given, ["schema", "repair"]);
    const { schema } = given;
    if (schema !== undefined && !isObject(schema)) throw new Error("options.schema: expected a JSON schema");
    if (schema !== undefined) z.fromJSONSchema(schema); // throws for one that cannot be checked
    return { schema, repairs: booleanIn(given, "repair", true) };
  },

  request({ request, options: { schema } }) {
    const format = request?.responseFormat;
    const asked = schema ?? (format?.type === "json-schema" ? format.schema : undefined);
    return asked === undefined ? pass() : pass({ state: asked });
  },

  answer({ result, state, round, options: { schema, repairs } }) {
    const wanted = schema ?? (isObject(state) ? state : undefined);
    if (wanted === undefined || result === undefined || result.finish.reason === "tool-calls") return pass();
    const text = result.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
    const problem = schemaProblem(text, wanted);
    if (problem === undefined) return pass(round === 0 ? {} : { note: { repaired: true } });
    if (round === 0 && repairs) {
      return repair(
        `Your answer does not match the JSON schema that was asked for: ${problem}. Answer again with the JSON alone.`,
      );
    }
    return refuse(502, "answer_schema", `The answer of the model does not match the JSON schema: ${problem}.`);
  },
});
