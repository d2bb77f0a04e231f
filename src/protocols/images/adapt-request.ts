// What is changed in a request for images before the model gets it that is really asked: its own words for a quality,
// and, where it stands in for the model that the client named, without what only the other one knows.

import { isPresent, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import type { Adapted } from "../protocol.ts";
import { checkImageValues, formValues } from "./check-values.ts";
import { type ImageModelRules, type ImageOperation, rulesOfImageModel } from "./model-rules.ts";

interface ImageTarget {
  /** The model that is asked now, by a name that resolveImageModel() knows where it has rules. */
  model: string;
  /** The model as the client named it. */
  askedModel: string;
  /** How many source images an edit has; 1 where left out. */
  sources?: number;
}

/**
 * Throws a 400 that names the field where a stand-in cannot draw what was asked for, so that its chain goes on. The model
 * itself is not among the changes.
 */
export function adaptImageBody(operation: ImageOperation, value: JsonObject, target: ImageTarget): Adapted | undefined {
  const rules = rulesOfImageModel(target.model);
  const asked = rulesOfImageModel(target.askedModel);
  const changes = new Changes();
  const isStandIn = (rules?.name ?? target.model) !== (asked?.name ?? target.askedModel);
  if (isStandIn && asked?.alwaysBase64 && !rules?.alwaysBase64 && !isPresent(value.response_format)) {
    // Who asks such a model reads b64_json; others answer with an address unless asked otherwise.
    changes.members.response_format = "b64_json";
  }
  if (rules === undefined) return changes.result;
  if (isStandIn) leaveOutUnknown(changes, rules, value);
  convertQuality(changes, rules, value);
  if (isStandIn) refuseUndrawable(rules, operation, { ...value, ...changes.members }, target.sources);
  if (rules.alwaysBase64 && isPresent(value.response_format)) changes.remove("response_format");
  return changes.result;
}

class Changes {
  readonly members: JsonObject = {};
  readonly #lost: string[] = [];

  remove(field: string, isLost = false): void {
    this.members[field] = undefined;
    if (isLost) this.#lost.push(field);
  }

  get result(): Adapted | undefined {
    if (Object.keys(this.members).length === 0) return undefined;
    return this.#lost.length === 0 ? { members: this.members } : { members: this.members, lost: this.#lost };
  }
}

/** What says nothing that a model without the field would not do anyway. */
const SAYS_NOTHING: Readonly<Record<string, readonly unknown[]>> = {
  background: ["auto", "opaque"],
  output_format: ["png"],
  output_compression: [100, "100"],
  moderation: ["auto"],
  input_fidelity: ["low"],
  partial_images: [0, "0"],
};

/** Fields without which the picture is the same, or nearly so: they may go, and it is reported. */
const HARMLESS: ReadonlySet<string> = new Set(["moderation", "input_fidelity", "output_compression", "partial_images"]);

/** What is left and still unknown to the stand-in would change the picture. */
function leaveOutUnknown(changes: Changes, rules: ImageModelRules, value: JsonObject): void {
  for (const [field, words] of Object.entries(SAYS_NOTHING)) {
    if (!isPresent(value[field]) || knows(rules, field)) continue;
    const saysNothing = words.includes(value[field]);
    if (saysNothing || HARMLESS.has(field)) changes.remove(field, !saysNothing);
  }
  // The gateway tells the whole answer as events.
  if (!rules.streams && isPresent(value.stream)) changes.remove("stream");
  // "You choose": that is what a model does which is asked for no size.
  if (value.size === "auto" && !Object.values(rules.drawings).some(({ sizes }) => sizes.includes("auto")))
    changes.remove("size");
}

function knows(rules: ImageModelRules, field: string): boolean {
  if (field === "partial_images") return rules.streams;
  if (field === "output_compression") return rules.compresses;
  return Object.hasOwn(rules.words, field);
}

function convertQuality(changes: Changes, { qualities }: ImageModelRules, { quality }: JsonObject): void {
  if (!isPresent(quality)) return;
  if (typeof quality !== "string" || !qualities?.has(quality)) {
    changes.remove("quality", true);
    return;
  }
  const own = qualities.get(quality);
  if (own !== quality) changes.members.quality = own;
}

function refuseUndrawable(
  rules: ImageModelRules,
  operation: ImageOperation,
  value: JsonObject,
  sources: number | undefined,
): void {
  checkImageValues(rules, operation, operation === "images" ? value : formValues(value));
  if (sources !== undefined && sources > rules.mostSources) {
    throw invalidField("image", `${rules.name} takes one image, got ${sources}.`);
  }
}
