// Whether an image model can draw what a request asks for: the values of its fields against the rules of the model.

import { ERRORS } from "../../errors/catalog.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import { isPresent, type JsonObject } from "../../lib/json.ts";
import { checkString, invalidField, type NumberRule, wrongType } from "../fields.ts";
import { type ImageModelRules, type ImageOperation, imageModelsThat, WORD_FIELDS } from "./model-rules.ts";

/** Texts of this length are quoted whole in messages. */
const MAX_QUOTED_LENGTH = 40;

/** As many as the models of the table take that are asked so. */
const MOST_SIDE_BY_SIDE = 4;

/**
 * Throws a 400 that names the field and what the model takes.
 * @param values - as JSON has them; of a form: formValues()
 */
export function checkImageValues(rules: ImageModelRules, operation: ImageOperation, values: JsonObject): void {
  const drawing = rules.drawings[operation];
  if (drawing === undefined) throw cannotDo(rules, operation);
  checkWord(values, "size", drawing.sizes, rules.name);
  checkRange(values, { field: "n", minimum: 1, maximum: drawing.most }, rules.name);
  if (rules.qualities === undefined) checkString(values, "quality");
  else checkWord(values, "quality", [...rules.qualities.keys()], rules.name);
  for (const field of WORD_FIELDS) {
    const words = rules.words[field];
    if (words !== undefined) checkWord(values, field, words, rules.name);
    else if (isPresent(values[field])) throw unknownTo(rules, field, (other) => other.words[field] !== undefined);
  }
  checkBackground(values);
  checkCompression(rules, values);
  checkStream(rules, values);
}

const CANNOT: { readonly [Operation in ImageOperation]: string } = {
  images: "cannot draw images",
  "image-edits": "cannot edit images",
  "image-variations": "cannot make variations of images",
};

function cannotDo({ name }: ImageModelRules, operation: ImageOperation): GatewayError {
  const others = listed(imageModelsThat(({ drawings }) => drawings[operation] !== undefined));
  const message = `model: ${name} ${CANNOT[operation]}; ask ${others}.`;
  return new GatewayError(ERRORS.unsupportedModel, message, { param: "model" });
}

function checkBackground({ background, output_format }: JsonObject): void {
  if (background !== "transparent" || output_format !== "jpeg") return;
  throw invalidField("background", "transparent needs the output_format png or webp, got jpeg.");
}

function checkCompression(rules: ImageModelRules, values: JsonObject): void {
  const { output_compression, output_format } = values;
  if (!isPresent(output_compression)) return;
  if (!rules.compresses) throw unknownTo(rules, "output_compression", (other) => other.compresses);
  checkRange(values, { field: "output_compression", minimum: 0, maximum: 100 }, rules.name);
  // 100 is what is done without the field.
  if (output_compression === 100 || output_format === "jpeg" || output_format === "webp") return;
  throw invalidField("output_compression", "needs the output_format jpeg or webp; png is never compressed with loss.");
}

function checkStream(rules: ImageModelRules, values: JsonObject): void {
  const { stream, partial_images } = values;
  if (stream === true && !rules.streams) throw unknownTo(rules, "stream", (other) => other.streams, "true");
  if (!isPresent(partial_images)) return;
  checkRange(values, { field: "partial_images", minimum: 0, maximum: 3 }, rules.name);
  if (partial_images === 0) return;
  if (!rules.streams) throw unknownTo(rules, "partial_images", (other) => other.streams);
  if (stream !== true) throw invalidField("partial_images", "above 0 needs stream to be true.");
}

function checkWord(values: JsonObject, field: string, words: readonly string[], model: string): void {
  const value = values[field];
  if (!isPresent(value)) return;
  if (typeof value !== "string") throw wrongType(field, "a string", value);
  if (words.includes(value)) return;
  throw invalidField(field, `${model} takes ${listed(words)}, got ${quoted(value)}.`);
}

/** Integers only. */
function checkRange(values: JsonObject, { field, minimum, maximum }: NumberRule, model: string): void {
  const value = values[field];
  if (!isPresent(value)) return;
  if (typeof value !== "number" && typeof value !== "string") throw wrongType(field, "an integer", value);
  if (Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum) return;
  const allowed = minimum === maximum ? `only ${minimum}` : `an integer from ${minimum} to ${maximum}`;
  throw invalidField(field, `${model} takes ${allowed}, got ${quoted(value)}.`);
}

/** @param value - the one value that it does not take; left out: any */
function unknownTo(
  { name }: ImageModelRules,
  field: string,
  knows: Parameters<typeof imageModelsThat>[0],
  value?: string,
) {
  const what = value === undefined ? `no ${field}` : `no ${field}: ${value}`;
  return invalidField(field, `${name} takes ${what}; leave it out, or ask ${listed(imageModelsThat(knows))}.`);
}

/** Such as "a, b or c". */
function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function quoted(value: string | number): string {
  if (typeof value === "number") return String(value);
  return JSON.stringify(value.length > MAX_QUOTED_LENGTH ? `${value.slice(0, MAX_QUOTED_LENGTH)}…` : value);
}

/** Fields of a form, which are texts, that mean numbers or truth values. */
const FORM_NUMBERS = ["n", "output_compression", "partial_images"];

/** The fields of a form as a JSON body would have them; what cannot be read stays a text. */
export function formValues(fields: JsonObject): JsonObject {
  const values = { ...fields };
  for (const field of FORM_NUMBERS) {
    const value = fields[field];
    if (typeof value === "string" && /^[+-]?\d{1,15}$/.test(value)) values[field] = Number(value);
  }
  if (fields.stream === "true" || fields.stream === "false") values.stream = fields.stream === "true";
  return values;
}

/** What a request is checked for whose model draws one image at a time, so that each is an exchange of its own. */
export function checkSideBySide(values: JsonObject, model: string): void {
  checkRange(values, { field: "n", minimum: 1, maximum: MOST_SIDE_BY_SIDE }, model);
}

/** How many images a request asks for, whatever its model. */
export function imagesAskedFor({ n }: JsonObject): number {
  return typeof n === "number" && Number.isSafeInteger(n) && n > 1 ? n : 1;
}
