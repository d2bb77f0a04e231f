// The images that a form brings to be edited or varied: how many, and what each of them has to be by its bytes.

import { ERRORS, type ErrorDefinition } from "../../errors/catalog.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { type PngFacts, readPng } from "../../media/png.ts";
import { invalidField, missingField } from "../fields.ts";
import type { ImageModelRules } from "./model-rules.ts";

/** A form for images: its text fields, repeated ones as lists, and its files. */
export interface ImageForm {
  value: JsonObject;
  files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
}

/** An image has to be smaller. */
const IMAGE_LIMIT_BYTES = 4 * 1024 * 1024;

/** Of models that no rule is known for. */
const MOST_SOURCES = 16;

/** Returns how many images there are. The mask is compared with the first one, which it is for. */
export function checkSources(form: ImageForm, rules: ImageModelRules | undefined): number {
  const images = form.files.filter(({ name }) => name === "image" || name === "image[]");
  for (const field of ["image", "image[]", "mask"]) {
    if (Object.hasOwn(form.value, field)) throw invalidField(paramOf(field), "expected a file, got a text.");
  }
  const [first, ...others] = images;
  if (first === undefined) throw missingField("image", "a square PNG file of less than 4 MB.");
  const most = rules?.mostSources ?? MOST_SOURCES;
  if (images.length > most) {
    throw invalidField("image", `${rules?.name ?? "an edit"} takes ${atMost(most)}, got ${images.length}.`);
  }
  if (most === 1 && first.name !== "image") {
    throw invalidField("image", `${rules?.name} takes one image, in a field of the name image.`);
  }
  const facts = readSource(first.bytes, "image", others.length === 0 ? "" : "the first file ");
  checkSquare(facts, "");
  for (const [index, { bytes }] of others.entries()) {
    const which = `file ${index + 2} `;
    checkSquare(readSource(bytes, "image", which), which);
  }
  checkMask(form, facts);
  return images.length;
}

function checkMask(form: ImageForm, image: PngFacts): void {
  const [mask, ...others] = form.files.filter(({ name }) => name === "mask");
  if (mask === undefined) return;
  if (others.length > 0) throw invalidField("mask", `expected one file, got ${others.length + 1}.`);
  const facts = readSource(mask.bytes, "mask", "");
  if (facts.width !== image.width || facts.height !== image.height) {
    const problem = `is ${pixels(facts)}, but the image is ${pixels(image)}; both must be of one size.`;
    throw refusal(ERRORS.dimensionMismatch, "mask", problem);
  }
  if (!facts.hasAlpha) {
    const problem = "has no alpha channel; what is to be edited has to be transparent in it.";
    throw refusal(ERRORS.maskWithoutAlpha, "mask", problem);
  }
}

function readSource(bytes: Uint8Array, param: string, which: string): PngFacts {
  if (bytes.length >= IMAGE_LIMIT_BYTES) {
    const problem = `${which}has ${bytes.length} bytes; an image must have less than ${IMAGE_LIMIT_BYTES} (4 MB).`;
    throw refusal(ERRORS.imageTooLarge, param, problem);
  }
  const facts = readPng(bytes);
  if ("problem" in facts) throw refusal(ERRORS.invalidImage, param, `${which}${facts.problem}.`);
  return facts;
}

function checkSquare(facts: PngFacts, which: string): void {
  if (facts.width === facts.height) return;
  throw refusal(ERRORS.imageNotSquare, "image", `${which}is ${pixels(facts)}; an image must be square.`);
}

function refusal(error: ErrorDefinition, param: string, problem: string): GatewayError {
  return new GatewayError(error, `${param}: ${problem}`, { param });
}

function pixels({ width, height }: PngFacts): string {
  return `${width}x${height}`;
}

function atMost(most: number): string {
  return most === 1 ? "one image" : `at most ${most} images`;
}

function paramOf(field: string): string {
  return field === "image[]" ? "image" : field;
}
