// How a request reaches a backend: in its own bytes where both speak the same format, with no more edits than were asked
// for, else translated there and back.

import type { Backend } from "../backends/backend.ts";
import { type BackendKind, formatOf, type Operation, servedBy } from "../backends/kinds.ts";
import type { ModelMetadata } from "../config/sections/metadata-entry.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { lossOfCitation, lossOfPart } from "../generation/answer-losses.ts";
import { Collector } from "../generation/collect.ts";
import type { ProtocolName } from "../generation/content.ts";
import { customCalls, customToolNames, customToolsAsFunctions } from "../generation/custom-tools.ts";
import { DropList, type Dropped } from "../generation/dropped.ts";
import type { GenerationEvent } from "../generation/events.ts";
import { adaptedEffort, lostReasoning, normaliseEffort } from "../generation/reasoning-effort.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { GenerationResult } from "../generation/result.ts";
import { hasThinking, splitThinking } from "../generation/thinking-parser.ts";
import { unwrapCallIds, wrapCallIds } from "../generation/tool-call-ids.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import type { Clock } from "../lib/clock.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { withMembers } from "../lib/json-members.ts";
import type { Logger } from "../logging/logger.ts";
import { isDataUrl } from "../media/data-url.ts";
import type { FetchExternal } from "../media/fetch-external.ts";
import { inlineMedia, needsInlining } from "../media/inline-media.ts";
import type { PromptSource } from "../prompts/resolve.ts";
import { passedAnswer } from "../protocols/chat/passed-answer.ts";
import { adaptChatBody } from "../protocols/chat/quirks.ts";
import { inClientsWords } from "../protocols/client-field.ts";
import { checkDepth } from "../protocols/fields.ts";
import { adaptMessagesBody } from "../protocols/messages/adapt-body.ts";
import type {
  AnswerContext,
  BackendProtocol,
  BackendTarget,
  ClientProtocol,
  EncodedRequest,
} from "../protocols/protocol.ts";
import { backendProtocol, clientProtocol } from "../protocols/registry.ts";
import { adaptResponsesBody } from "../protocols/responses/adapt-body.ts";
import { type AnswerTransform, createTranslation } from "../protocols/translate.ts";
import { hasSearchTool, searchesInResponses } from "../web-search/native.ts";
import type { RequestContext } from "./context.ts";
import { prefillMembers } from "./exact-continuation.ts";
import type { Bridge, ForwardRequest, Prepared } from "./forward-request.ts";
import { createVectorBridge } from "./vector-bridge.ts";

export interface BridgeParts {
  prompts: PromptSource;
  /** What is known of a model on a backend. */
  metadataOf(backend: Backend, model: string): ModelMetadata | undefined;
  fetchExternal: FetchExternal;
  signatures: SignatureMemory;
  clock: Clock;
  log: Logger;
}

/** What a backend cannot fetch by its URL, so that the gateway does. Undefined: it takes all URLs. */
function inlinedKinds(format: ProtocolName, kind: BackendKind): readonly ("image" | "document")[] | undefined {
  if (kind.inlines !== undefined) return ["image", "document"];
  return format === "chat" ? ["document"] : undefined; // the format has no place for a document's URL
}

/** Signatures of tool calls, for clients whose format has no place for them. */
const SIGNATURES = { maxEntries: 20_000, maxBytes: 32 * 1024 * 1024, ttlMs: 24 * 60 * 60 * 1000 };

/** By the id of the call. */
export type SignatureMemory = BoundedMap<string>;

export function createSignatureMemory(now: () => number): SignatureMemory {
  return new BoundedMap<string>({ ...SIGNATURES, now });
}

export function createBridge(parts: BridgeParts): Bridge {
  const { prompts, metadataOf, fetchExternal, signatures, clock, log } = parts;
  const vectors = createVectorBridge(clock.now);
  const unixTime = () => Math.floor(clock.wallTime() / 1000);
  const decoded = new WeakMap<JsonObject, GenerationRequest>();

  /** The neutral form of a body, made once however many backends are tried. */
  function neutralOf(value: JsonObject, client: ClientProtocol): GenerationRequest {
    let request = decoded.get(value);
    if (request === undefined) {
      checkDepth(value);
      request = client.decodeRequest(value);
      decoded.set(value, request);
    }
    return request;
  }

  function nativeBody(
    context: RequestContext,
    { operation, model, askedModel, body, goesOn }: ForwardRequest,
    backend: Backend,
    asksUsage: boolean,
  ): Uint8Array {
    const format = formatOf(operation);
    if (format === undefined) return body.bytes();
    const { value } = body;
    const target = { kind: backend.kind, model };
    let changes: JsonObject | undefined;
    if (format === "chat") changes = adaptChatBody(value, backend.kind.chat);
    if (format === "messages") changes = adaptMessagesBody({ ...value, model: askedModel }, model);
    if (format === "responses") changes = adaptResponsesBody(value);
    if (format === "chat" || format === "responses") changes = joined(changes, adaptedEffort(format, value, target));
    if (format === "chat" && value.reasoning !== undefined) {
      const lost = lostReasoning(value, target).map((feature): Dropped => ({ feature }));
      noteDropped(context, backend, format, format, lost);
    }
    const prompt = prompts.promptFor(model, backend.name);
    if (prompt !== undefined) {
      const adapted = changes === undefined ? value : { ...value, ...changes };
      changes = joined(changes, prompts.inject(format, adapted, prompt));
    }
    if (goesOn) changes = joined(changes, prefillMembers(backend.kind, operation));
    if (asksUsage) {
      changes = joined(changes, {
        stream_options: { ...(value.stream_options as object | null), include_usage: true },
      });
    }
    return changes === undefined ? body.bytes() : withMembers(body.bytes(), changes);
  }

  function translate(
    context: RequestContext,
    forward: ForwardRequest,
    backend: Backend,
    operation: Operation,
    client: ClientProtocol,
    metadata: ModelMetadata | undefined,
  ): Prepared | Promise<Prepared> {
    const { model, stream } = forward;
    const { kind } = backend;
    const notes: Dropped[] = [];
    let request: GenerationRequest = { ...(forward.neutral ?? neutralOf(forward.body.value, client)), model, stream };
    const { effort } = request.reasoning;
    if (effort !== undefined) {
      const normalised = normaliseEffort(effort, { kind, model });
      if (normalised.reason !== undefined)
        notes.push({ feature: `reasoning effort ${effort}`, reason: normalised.reason });
      const { effort: _, ...reasoning } = request.reasoning;
      const { effort: sent } = normalised;
      request = { ...request, reasoning: sent === undefined ? reasoning : { ...reasoning, effort: sent } };
    }
    const prompt = prompts.promptFor(model, backend.name);
    if (prompt !== undefined) request = prompts.injectIntoRequest(request, prompt);
    const protocol = backendProtocol(formatOf(operation) as ProtocolName);
    const signatureOf = (clientId: string) => signatures.get(clientId);
    request = unwrapCallIds(request, protocol.name === "generate-content" ? signatureOf : undefined);
    const customTools = hasCustomTools(protocol.name, kind) ? NO_TOOLS : customToolNames(request);
    if (customTools.size > 0) request = customToolsAsFunctions(request);

    const encode = (ready: GenerationRequest): Prepared => {
      const { body, headers, dropped } = encodedFor(protocol, ready, {
        model,
        kind,
        ...(metadata?.limits?.max_output === undefined ? {} : { maxOutputTokens: metadata.limits.max_output }),
        signatureOf,
      });
      noteDropped(context, backend, client.name, protocol.name, [...notes, ...dropped]);
      const nonce = crypto.randomUUID().replaceAll("-", "");
      const answer: AnswerContext = {
        model: forward.askedModel,
        createdAt: unixTime(),
        now: unixTime,
        nonce,
        request: ready,
      };
      return {
        operation,
        body: encoder.encode(
          JSON.stringify(forward.goesOn ? { ...body, ...prefillMembers(backend.kind, operation) } : body),
        ),
        ...(headers === undefined ? {} : { headers }),
        translation: createTranslation({
          client,
          backend: protocol,
          context: answer,
          transforms: transformsFor(metadata, customTools, nonce),
          ...observers(context, forward, answer, client.name, (dropped) =>
            noteDropped(context, backend, protocol.name, client.name, dropped),
          ),
        }),
      };
    };
    const kinds = inlinedKinds(protocol.name, kind);
    if (kinds === undefined || !needsInlining(request, { kinds })) return encode(request);
    return inlineMedia(request, { kinds, fetchExternal, signal: context.signal }).then(encode);
  }

  function noteDropped(
    context: RequestContext,
    backend: Backend,
    from: ProtocolName,
    to: ProtocolName,
    dropped: readonly Dropped[],
  ): void {
    if (dropped.length === 0) return;
    context.record.dropped = [...(context.record.dropped ?? []), ...dropped.map(({ feature }) => feature)];
    log.debug(
      { request_id: context.id, backend: backend.name, from, to, dropped },
      "a translation could not carry all",
    );
  }

  /** What the gateway remembers of an answer on its way, and what of it the client does not get. */
  function observers(
    context: RequestContext,
    forward: ForwardRequest,
    answer: AnswerContext,
    client: ProtocolName,
    noteLost: (dropped: readonly Dropped[]) => void,
  ) {
    const collector = forward.answered === undefined ? undefined : new Collector();
    const losses = new DropList();
    function note(loss: string | undefined): void {
      if (loss !== undefined) losses.add(loss);
    }
    function sawCall(part: { type: string; id?: string; signature?: string }): void {
      if (part.type !== "tool-call" || part.id === undefined || part.signature === undefined) return;
      signatures.set(part.id, part.signature, part.signature.length);
    }
    return {
      sawEvent(event: GenerationEvent): void {
        if (event.type === "part-start") {
          sawCall(event.part);
          note(lossOfPart(event.part, client));
        } else if (event.type === "citation") note(lossOfCitation(event.citation, client));
        else if (event.type === "usage") context.record.usage = event.usage;
        collector?.push(event);
      },
      lostCitation: () => note("answer.citations"),
      sawEnd(): void {
        noteLost(losses.entries);
        const result = collector?.result();
        if (result !== undefined) forward.answered?.(result, answer);
      },
      sawResult(result: GenerationResult): void {
        for (const part of result.parts) {
          sawCall(part);
          note(lossOfPart(part, client));
          if (part.type === "text") for (const citation of part.citations ?? []) note(lossOfCitation(citation, client));
        }
        noteLost(losses.entries);
        if (result.usage !== undefined) context.record.usage = result.usage;
        forward.answered?.(result, answer);
      },
    };
  }

  return {
    prepare(context, request, backend) {
      if (context.record.dropped !== undefined) context.record.dropped = []; // what an attempt lost that has failed
      const operation = askedBy(backend, request);
      const format = formatOf(request.operation);
      if (format === undefined) {
        return vectors.prepare(request, backend, operation) ?? { operation, body: request.body.bytes() };
      }
      const metadata = metadataOf(backend, request.model);
      const isNative = operation === request.operation && request.client === undefined;
      const mustInline = backend.kind.inlines === "all" && hasExternalImage(request.body.value);
      if (isNative && !mustInline && !hasThinkingPattern(operation, metadata)) {
        const hidesUsage = context.settings.streaming.count_tokens && asksNoUsage(request, backend);
        const passed = operation === "chat" ? passedAnswer(backend.kind.chat, request.body.value) : undefined;
        return { operation, body: nativeBody(context, request, backend, hidesUsage), hidesUsage, passed };
      }
      return translate(context, request, backend, operation, request.client ?? clientProtocol(format), metadata);
    },
  };
}

const encoder = new TextEncoder();

/** The operation by which a backend is asked; the router saw that there is one. */
function askedBy(backend: Backend, { operation, body, neutral }: ForwardRequest): Operation {
  const served = servedBy(backend.paths, operation) as Operation;
  if (operation !== "messages" || served !== "chat" || neutral !== undefined) return served;
  return hasSearchTool(body.value) && searchesInResponses(backend) ? "responses" : served;
}

/** Engines that leave thoughts in the text speak chat; other formats have a place for them. */
function hasThinkingPattern(operation: Operation, metadata: ModelMetadata | undefined): boolean {
  return operation === "chat" && hasThinking(metadata?.thinking);
}

/** Whether the gateway has to ask for the token counts of a chat stream itself, because the client did not. */
function asksNoUsage({ operation, stream, body }: ForwardRequest, backend: Backend): boolean {
  if (!stream || operation !== "chat" || !backend.kind.chat.countsStreams) return false;
  const options = body.value.stream_options as { include_usage?: unknown } | null | undefined;
  return options?.include_usage !== true;
}

/** Whether a chat request names pictures by address. */
function hasExternalImage({ messages }: JsonObject): boolean {
  if (!Array.isArray(messages)) return false;
  return messages.some(
    (message: unknown) => isObject(message) && Array.isArray(message.content) && message.content.some(isExternalImage),
  );
}

function isExternalImage(part: unknown): boolean {
  if (!isObject(part) || part.type !== "image_url") return false;
  const url = isObject(part.image_url) ? part.image_url.url : part.image_url;
  // What is no link to fetch is refused there, instead of being tried by the backend.
  return typeof url === "string" && !isDataUrl(url);
}

/** Refusals of the codec name the field as the client calls it. */
function encodedFor(protocol: BackendProtocol, request: GenerationRequest, target: BackendTarget): EncodedRequest {
  try {
    return protocol.encodeRequest(request, target);
  } catch (error) {
    throw error instanceof GatewayError ? inClientsWords(error, request) : error;
  }
}

const NO_TOOLS: ReadonlySet<string> = new Set();

/** Whether a backend of this format and kind takes free-form tools. */
function hasCustomTools(format: ProtocolName, { chat }: BackendKind): boolean {
  return format === "responses" || (format === "chat" && chat.customTools);
}

function transformsFor(
  metadata: ModelMetadata | undefined,
  customTools: ReadonlySet<string>,
  nonce: string,
): AnswerTransform[] {
  const { thinking } = metadata ?? {};
  const transforms: AnswerTransform[] = [];
  if (hasThinking(thinking)) transforms.push(splitThinking(thinking));
  if (customTools.size > 0) transforms.push(customCalls(customTools));
  transforms.push(wrapCallIds(nonce));
  return transforms;
}

function joined(one: JsonObject | undefined, other: JsonObject | undefined): JsonObject | undefined {
  return one === undefined ? other : other === undefined ? one : { ...one, ...other };
}
