// Pictures, speech and transcriptions on their way to a backend: in the client's own bytes but for what the model that is
// asked takes otherwise; to Gemini in its own words.

import type { Backend } from "../backends/backend.ts";
import { operationPath } from "../backends/backend.ts";
import { formatOf, type Operation } from "../backends/operations.ts";
import { FormBody } from "../lib/form-body.ts";
import type { JsonObject } from "../lib/json.ts";
import { objectNearEnd } from "../lib/json-tail.ts";
import type { RequestBody } from "../lib/request-body.ts";
import { isSpecificationName, resolveImageModel } from "../names.ts";
import {
  decodeImageAnswer,
  encodeImageRequest,
  googleImageModel,
  joinImageAnswers,
} from "../protocols/generate-content/images.ts";
import { generateContentBackend } from "../protocols/generate-content/index.ts";
import { adaptImageBody } from "../protocols/images/adapt-request.ts";
import { checkSideBySide } from "../protocols/images/check-values.ts";
import type { ImageOperation } from "../protocols/images/model-rules.ts";
import { imagesPassThrough } from "../protocols/images/pass-through.ts";
import { imageStreamEdits } from "../protocols/images/stream-edits.ts";
import type { AnswerEdits } from "../protocols/protocol.ts";
import { EVENT_STREAM } from "../upstream/send.ts";
import type { RequestContext } from "./context.ts";
import type { ModelRequest, NoteDropped, Prepared, SideBySide } from "./model-request.ts";
import { wholeAnswers } from "./vector-bridge.ts";

interface MediaBridgeParts {
  /** The name under which a backend lists a model. */
  listedAs(backendName: string, model: string): string | undefined;
  /** Unix time in seconds. */
  unixTime(): number;
  noteDropped: NoteDropped;
}

const encoder = new TextEncoder();

/** The result prepares a request, or returns undefined for what is no picture, no speech and no transcription. */
export function createMediaBridge({ listedAs, unixTime, noteDropped }: MediaBridgeParts) {
  function sendImages(
    context: RequestContext,
    request: ModelRequest,
    operation: ImageOperation,
    backend: Backend,
  ): Prepared {
    const { body, model, askedModel } = request;
    const sources = body instanceof FormBody ? body.files.filter(({ name }) => name.startsWith("image")).length : 1;
    const { members, lost = [] } = adaptImageBody(operation, body.value, { model, askedModel, sources }) ?? UNCHANGED;
    const dropped = lost.map((feature) => ({ feature }));
    noteDropped(context, backend, operation, dropped);
    const listed = listedAs(backend.name, model) ?? model;
    const name = isSpecificationName(listed) ? resolveImageModel(listed) : nameAt(backend, operation, listed);
    const sent = outgoingBody(body, members, name);
    const path = operationPath(backend, operation, listed, false);
    return { operation, ...sent, ...(path !== undefined && { path }), edits: editsFor(context, request, unixTime()) };
  }

  function sendToGemini(context: RequestContext, request: ModelRequest, backend: Backend): Prepared {
    const { body: asked, model, askedModel, stream } = request;
    const adapted = adaptImageBody("images", asked.value, { model, askedModel }) ?? UNCHANGED;
    const value = { ...asked.value, ...adapted.members };
    checkSideBySide(value, model);
    const listed = listedAs(backend.name, model);
    const name = googleImageModel(listed === undefined ? [] : [listed], model);
    const { body, dropped } = encodeImageRequest(value, { model: name });
    noteDropped(context, backend, "image-content", [
      ...(adapted.lost ?? []).map((feature) => ({ feature })),
      ...dropped,
    ]);
    const responseFormat = value.response_format === "b64_json" ? "b64_json" : "url";
    const created = unixTime();
    const edits = editsFor(context, request, created);
    return {
      operation: "image-content",
      path: operationPath(backend, "image-content", name, false),
      body: encoder.encode(JSON.stringify(body)),
      translation: wholeAnswers(
        (answer) => decodeImageAnswer(answer as JsonObject, { created, responseFormat }),
        (status, told) => generateContentBackend.decodeError(status, told),
        formatOf("images"),
      ),
      sideBySide: { times: request.choices, join: (answers) => together(answers, stream, edits) },
    };
  }

  return (
    context: RequestContext,
    request: ModelRequest,
    backend: Backend,
    operation: Operation,
  ): Prepared | undefined => {
    switch (operation) {
      case "image-content":
        return sendToGemini(context, request, backend);
      case "images":
      case "image-edits":
      case "image-variations":
        return sendImages(context, request, operation, backend);
      case "speech":
      case "transcriptions":
      case "translations":
        return {
          operation,
          ...outgoingBody(request.body, undefined, nameAt(backend, operation, request.model)),
          answers: request.answers,
        };
      default:
        return undefined;
    }
  };
}

const UNCHANGED: ReturnType<typeof adaptImageBody> & object = { members: {} };

/** What the body calls the model, where the backend knows it by another name. */
function nameAt({ kind, settings }: Backend, operation: Operation, model: string): string {
  const named = kind.membersOf?.({ operation, model, settings })?.model;
  return typeof named === "string" ? named : model;
}

/** The bytes of a body under the name that the backend knows, with the type that belongs to them. */
function outgoingBody(
  body: RequestBody,
  members: Record<string, unknown> | undefined,
  model: string | undefined,
): Pick<Prepared, "body" | "headers"> {
  const changes = body.value.model === model ? members : { ...members, model };
  const changed = changes === undefined || Object.keys(changes).length === 0 ? body : body.with(changes);
  const { contentType } = changed;
  return { body: changed.bytes(), ...(contentType !== undefined && { headers: { "content-type": contentType } }) };
}

function editsFor(
  { settings }: RequestContext,
  { stream, operation, choices }: ModelRequest,
  createdAt: number,
): AnswerEdits | undefined {
  if (!stream) return undefined;
  const prefix = operation === "images" ? "image_generation" : "image_edit";
  return imageStreamEdits({ style: settings.streaming.image_events, prefix, images: choices, createdAt });
}

/** The pictures of several answers as one answer, or as the events of a stream. */
function together(
  answers: readonly Uint8Array[],
  stream: boolean,
  edits: AnswerEdits | undefined,
): ReturnType<SideBySide["join"]> {
  const body = joinImageAnswers(answers);
  const usage = imagesPassThrough.usageOf?.({ usage: objectNearEnd(body, "usage") });
  if (!stream) return { body, contentType: "application/json", usage };
  const events = imagesPassThrough.asEvents?.(body) ?? body;
  return { body: edits?.push(events) ?? events, contentType: EVENT_STREAM, usage };
}
