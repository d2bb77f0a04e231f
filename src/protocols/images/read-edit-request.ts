// Validation of forms that ask for edits and variations of images.

import { isPresent } from "../../lib/json.ts";
import { checkBoolean, checkString, invalidField, requireModel } from "../fields.ts";
import { affinityOf, type RequestSummary } from "../request-summary.ts";
import { checkSources, type ImageForm } from "./check-sources.ts";
import { checkImageValues, formValues, imagesAskedFor } from "./check-values.ts";
import { type ImageOperation, rulesOfImageModel, WORD_FIELDS } from "./model-rules.ts";
import { requirePrompt } from "./read-request.ts";

/** What a form's summary says beyond that of any request. */
interface FormSummary extends RequestSummary {
  /** The form names no model: `model` is the one that is asked then. */
  isDefaultModel: boolean;
  /** How many images there are to edit. */
  sources: number;
}

/** Fields that are no files: one with a file name would be read by this gateway and by its backends in different ways. */
const TEXT_FIELDS: ReadonlySet<string> = new Set([
  ...["model", "prompt", "n", "size", "quality", "user"],
  ...["output_compression", "stream", "partial_images"],
  ...WORD_FIELDS,
]);

export function readImageEditRequest(form: ImageForm): FormSummary {
  requireTexts(form);
  requirePrompt(form.value);
  return readForm("image-edits", form, "gpt-image-1");
}

export function readImageVariationRequest(form: ImageForm): FormSummary {
  requireTexts(form);
  return readForm("image-variations", form, "dall-e-2");
}

function readForm(operation: ImageOperation, form: ImageForm, defaultModel: string): FormSummary {
  const values = formValues(form.value);
  const isDefaultModel = !isPresent(values.model);
  const model = isDefaultModel ? defaultModel : requireModel(values);
  const stream = checkBoolean(values, "stream");
  checkString(values, "user");
  const rules = rulesOfImageModel(model);
  if (rules !== undefined) checkImageValues(rules, operation, values);
  const sources = checkSources(form, rules);
  const choices = imagesAskedFor(values);
  return { model: rules?.name ?? model, stream, choices, affinity: affinityOf, isDefaultModel, sources };
}

function requireTexts({ files }: ImageForm): void {
  const file = files.find(({ name }) => TEXT_FIELDS.has(name));
  if (file !== undefined) throw invalidField(file.name, "expected a text, got a file.");
}
