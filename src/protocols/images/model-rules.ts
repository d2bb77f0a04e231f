// What each image model that has rules of its own accepts, as data. Models of other names are their backend's affair.

import { type ImageModelName, resolveImageModel } from "../../names.ts";

export type ImageOperation = "images" | "image-edits" | "image-variations";

/** What a model can be asked for in one operation. */
interface Drawing {
  sizes: readonly string[];
  /** The most images of one request. */
  most: number;
}

/** Fields that hold one of a few words, and which not every model knows. */
export const WORD_FIELDS = [
  "style",
  "response_format",
  "output_format",
  "background",
  "moderation",
  "input_fidelity",
] as const;
type WordField = (typeof WORD_FIELDS)[number];

export interface ImageModelRules {
  name: ImageModelName;
  /** What it can do; an operation that is not named is refused. */
  drawings: { readonly [Operation in ImageOperation]?: Drawing };
  /** Accepted qualities, and what each becomes on its way to the model; undefined: it is not sent on. */
  qualities: ReadonlyMap<string, string | undefined> | undefined;
  /** The words of each field that the model knows. */
  words: { readonly [Field in WordField]?: readonly string[] };
  /** Answers with events and partial images. */
  streams: boolean;
  /** Knows output_compression. */
  compresses: boolean;
  /** Always answers in base64, and refuses to be asked for it. */
  alwaysBase64: boolean;
  /** The most source images of one edit; several are named image[]. */
  mostSources: number;
}

const SQUARES = ["256x256", "512x512", "1024x1024"];
const ANY_FORMAT = { response_format: ["url", "b64_json"] };

const DALL_E_2: Omit<ImageModelRules, "name"> = {
  drawings: {
    images: { sizes: SQUARES, most: 10 },
    "image-edits": { sizes: SQUARES, most: 10 },
    "image-variations": { sizes: SQUARES, most: 10 },
  },
  // The model has one quality only; the API takes its name.
  qualities: new Map([
    ["standard", "standard"],
    ["auto", undefined],
  ]),
  words: ANY_FORMAT,
  streams: false,
  compresses: false,
  alwaysBase64: false,
  mostSources: 1,
};

const DALL_E_3: Omit<ImageModelRules, "name"> = {
  ...DALL_E_2,
  drawings: { images: { sizes: ["1024x1024", "1792x1024", "1024x1792"], most: 1 } },
  qualities: new Map([
    ["standard", "standard"],
    ["hd", "hd"],
    ["low", "standard"],
    ["medium", "standard"],
    ["auto", "standard"],
    ["high", "hd"],
  ]),
  words: { ...ANY_FORMAT, style: ["vivid", "natural"] },
};

const GPT_IMAGE_SIZES = ["1024x1024", "1536x1024", "1024x1536", "auto"];

const GPT_IMAGE: Omit<ImageModelRules, "name"> = {
  drawings: {
    images: { sizes: GPT_IMAGE_SIZES, most: 1 },
    "image-edits": { sizes: GPT_IMAGE_SIZES, most: 10 },
  },
  qualities: new Map([
    ["low", "low"],
    ["medium", "medium"],
    ["high", "high"],
    ["auto", "auto"],
    ["standard", "medium"],
    ["hd", "high"],
  ]),
  words: {
    response_format: ["b64_json"],
    output_format: ["png", "jpeg", "webp"],
    background: ["transparent", "opaque", "auto"],
    moderation: ["low", "auto"],
    input_fidelity: ["low", "high"],
  },
  streams: true,
  compresses: true,
  alwaysBase64: true,
  mostSources: 16,
};

/** The sizes that have a ratio and a resolution of these models: what lies between them cannot be drawn. */
const NANO_BANANA_SIZES = [...SQUARES, "1536x1024", "1024x1536", "1024x1792", "1792x1024", "auto"];

const NANO_BANANA: Omit<ImageModelRules, "name"> = {
  ...DALL_E_2,
  drawings: { images: { sizes: NANO_BANANA_SIZES, most: 4 } },
  qualities: undefined,
};

const { input_fidelity: _, ...WITHOUT_FIDELITY } = GPT_IMAGE.words;

const RULES: { readonly [Name in ImageModelName]: Omit<ImageModelRules, "name"> } = {
  "dall-e-2": DALL_E_2,
  "dall-e-3": DALL_E_3,
  "gpt-image-1": GPT_IMAGE,
  "gpt-image-1.5": GPT_IMAGE,
  "gpt-image-1-mini": { ...GPT_IMAGE, words: WITHOUT_FIDELITY },
  "nano-banana": NANO_BANANA,
  "nano-banana-pro": {
    ...NANO_BANANA,
    drawings: { images: { sizes: [...NANO_BANANA_SIZES, "2048x2048", "4096x4096"], most: 4 } },
  },
};

const NAMES = Object.keys(RULES) as readonly ImageModelName[];

/** @param model - in any spelling; undefined for a model that has no rules here */
export function rulesOfImageModel(model: string): ImageModelRules | undefined {
  const name = resolveImageModel(model);
  return name === undefined ? undefined : { name, ...RULES[name] };
}

/** The canonical names of those who can, for messages. */
export function imageModelsThat(can: (rules: Omit<ImageModelRules, "name">) => boolean): readonly string[] {
  return NAMES.filter((name) => can(RULES[name]));
}
