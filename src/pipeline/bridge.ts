// How a request reaches a backend: in its own bytes where both speak the same format, with no more edits than were asked
// for, else translated there and back.

import type { Backend } from "../backends/backend.ts";
import { type BackendKind, searchOperation } from "../backends/kind.ts";
import { formatOf, type Operation, servedBy } from "../backends/operations.ts";
import type { ModelMetadata } from "../config/sections/metadata-entry.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { type AnswerLosses, LossWatch } from "../generation/answer-losses.ts";
import type { AnswerTransform } from "../generation/answer-transform.ts";
import { Collector } from "../generation/collect.ts";
import type { ProtocolName } from "../generation/content.ts";
import { customCalls, customToolNames, customToolsAsFunctions } from "../generation/custom-tools.ts";
import type { Dropped } from "../generation/dropped.ts";
import type { GenerationEvent } from "../generation/events.ts";
import { normaliseEffort } from "../generation/reasoning-effort.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { Finish } from "../generation/result.ts";
import { hasThinking, splitThinking } from "../generation/thinking-parser.ts";
import { unwrapCallIds, wrapCallIds } from "../generation/tool-call-ids.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import type { Clock } from "../lib/clock.ts";
import { compact, type JsonObject, joined } from "../lib/json.ts";
import { withMembers } from "../lib/json-members.ts";
import type { Logger } from "../logging/logger.ts";
import type { FetchExternal } from "../media/fetch-external.ts";
import { inlineMedia, needsInlining } from "../media/inline-media.ts";
import { injectIntoRequest } from "../prompts/inject.ts";
import type { PromptSource } from "../prompts/resolve.ts";
import { namedAs } from "../protocols/answer-name.ts";
import { inClientsWords } from "../protocols/client-field.ts";
import { checkDepth } from "../protocols/fields.ts";
import type {
  AnswerContext,
  AnswerEdits,
  BackendProtocol,
  BackendTarget,
  ClientProtocol,
  EncodedRequest,
  PassThrough,
} from "../protocols/protocol.ts";
import { backendProtocol, clientProtocol, passThrough } from "../protocols/registry.ts";
import { requestInOwnFormat } from "../protocols/stream-join.ts";
import { createTranslation } from "../protocols/translate.ts";
import { BETAS, VERSION } from "../upstream/headers.ts";
import type { RequestContext } from "./context.ts";
import { prefillMembers } from "./exact-continuation.ts";
import { createMediaBridge } from "./media-bridge.ts";
import type { Bridge, ModelRequest, Prepared } from "./model-request.ts";
import { createVectorBridge } from "./vector-bridge.ts";

export interface BridgeParts {
  prompts: PromptSource;
  /** What is known of a model on a backend. */
  metadataOf(backend: Backend, model: string): ModelMetadata | undefined;
  /** The name under which a backend lists a model. */
  listedAs(backendName: string, model: string): string | undefined;
  fetchExternal: FetchExternal;
  signatures: SignatureMemory;
  clock: Clock;
  log: Logger;
}

/** What a backend cannot fetch by its URL, so that the gateway does. Undefined: it takes all URLs. */
function inlinedKinds({ inlines }: BackendProtocol, kind: BackendKind): BackendProtocol["inlines"] {
  return kind.inlines === undefined ? inlines : ["image", "document"];
}

/** Signatures of tool calls, for clients whose format has no place for them. */
const SIGNATURES = { maxEntries: 20_000, maxBytes: 32 * 1024 * 1024, ttlMs: 24 * 60 * 60 * 1000 };

/** By the format that signed, which alone takes the signature back, and the id of the call. */
type SignatureMemory = BoundedMap<string>;

function signatureKey(format: ProtocolName, callId: string): string {
  return `${format} ${callId}`;
}

export function createSignatureMemory(now: () => number): SignatureMemory {
  return new BoundedMap<string>({ ...SIGNATURES, now });
}

export function createBridge(parts: BridgeParts): Bridge {
  const { prompts, metadataOf, listedAs, fetchExternal, signatures, clock, log } = parts;
  const prepareVectors = createVectorBridge(clock.now, noteLostMembers);
  const unixTime = () => Math.floor(clock.wallTime() / 1000);
  const prepareMedia = createMediaBridge({ listedAs, unixTime, noteDropped: noteLostMembers });
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

  /** @param counting - what has to be asked for so that a stream is counted */
  function nativeBody(
    context: RequestContext,
    { operation, model, askedModel, body, goesOn }: ModelRequest,
    backend: Backend,
    passing: PassThrough,
    counting: JsonObject | undefined,
  ): Uint8Array {
    const { value } = body;
    const { members, lost } = passing.adapt?.(value, { kind: backend.kind, model, askedModel }) ?? UNCHANGED;
    if (lost !== undefined) {
      const dropped = lost.map((feature): Dropped => ({ feature }));
      noteDropped(context, backend, operation, operation, dropped);
    }
    let changes = members;
    const prompt = prompts.promptFor(model, backend.name);
    if (prompt !== undefined) {
      const adapted = changes === undefined ? value : { ...value, ...changes };
      changes = joined(changes, passing.injectPrompt?.(adapted, prompt, prompts.merge));
    }
    if (goesOn) changes = joined(changes, prefillMembers(backend.kind, operation));
    changes = joined(changes, counting);
    changes = joined(changes, ownMembers(context, operation, model, backend));
    return changes === undefined ? body.bytes() : withMembers(body.bytes(), changes);
  }

  function translate(
    context: RequestContext,
    forward: ModelRequest,
    backend: Backend,
    operation: Operation,
    client: ClientProtocol,
    metadata: ModelMetadata | undefined,
  ): Prepared | Promise<Prepared> {
    const { model, stream } = forward;
    const { kind } = backend;
    const notes: Dropped[] = [];
    let request: GenerationRequest = {
      ...(forward.asking.neutral ?? neutralOf(forward.body.value, client)),
      model,
      stream,
    };
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
    if (prompt !== undefined) request = injectIntoRequest(request, prompt, prompts.merge);
    const protocol = backendProtocol(formatOf(operation) as ProtocolName);
    const signatureOf = (clientId: string) => signatures.get(signatureKey(protocol.name, clientId));
    request = unwrapCallIds(request, protocol.signsCalls ? signatureOf : undefined);
    const customTools = protocol.hasCustomTools?.(kind) ? NO_TOOLS : customToolNames(request);
    if (customTools.size > 0) request = customToolsAsFunctions(request);

    const encode = (ready: GenerationRequest): Prepared => {
      const { body, headers, dropped } = encodedFor(protocol, ready, {
        model,
        kind,
        ...(metadata?.limits?.max_output === undefined ? {} : { maxOutputTokens: metadata.limits.max_output }),
        signatureOf,
      });
      noteDropped(context, backend, client.name, protocol.name, [...notes, ...dropped]);
      const answer = answerContext(context, forward, ready);
      return {
        operation,
        body: encoder.encode(
          JSON.stringify({
            ...body,
            ...(forward.goesOn && prefillMembers(kind, operation)),
            ...kind.membersOf?.({ operation, model, settings: backend.settings, betas: headers?.[BETAS] }),
          }),
        ),
        ...(headers === undefined ? {} : { headers }),
        translation: createTranslation({
          client,
          backend: protocol,
          context: answer,
          transforms: transformsFor(metadata, customTools, answer.nonce),
          ...observers(context, forward, answer, protocol.name, client.losses, (dropped) =>
            noteDropped(context, backend, protocol.name, client.name, dropped),
          ),
        }),
      };
    };
    const kinds = inlinedKinds(protocol, kind);
    if (kinds === undefined || !needsInlining(request, { kinds })) return encode(request);
    return inlineMedia(request, { kinds, fetchExternal, signal: context.client.signal }).then(encode);
  }

  function answerContext(
    { record }: RequestContext,
    { askedModel }: ModelRequest,
    request: GenerationRequest,
  ): AnswerContext {
    const nonce = crypto.randomUUID().replaceAll("-", "");
    const elapsedMs = () => clock.now() - record.startedAtMs;
    return { model: askedModel, createdAt: unixTime(), now: unixTime, elapsedMs, nonce, request };
  }

  /** The same with the answer as the rest of one that another backend has begun in the same format. */
  function restOf(
    context: RequestContext,
    forward: ModelRequest,
    backend: Backend,
    client: ClientProtocol,
    { hidesUsage = false, edits, ...prepared }: Prepared,
  ): Prepared {
    const { name, losses } = client;
    const answer = answerContext(context, forward, requestInOwnFormat(client, forward.body));
    const translation = createTranslation({
      client,
      backend: backendProtocol(name),
      context: answer,
      transforms: [],
      keeps: { hidesUsage, edits },
      ...observers(context, forward, answer, name, losses, (dropped) =>
        noteDropped(context, backend, name, name, dropped),
      ),
    });
    return { ...prepared, translation };
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

  /** Of a request that is not translated by way of the neutral model. */
  function noteLostMembers(
    context: RequestContext,
    backend: Backend,
    operation: Operation,
    dropped: readonly Dropped[],
  ): void {
    noteDropped(context, backend, operation, operation, dropped);
  }

  /** What the gateway remembers of an answer on its way, and what of it the client does not get. */
  function observers(
    context: RequestContext,
    forward: ModelRequest,
    answer: AnswerContext,
    format: ProtocolName,
    lost: AnswerLosses,
    noteLost: (dropped: readonly Dropped[]) => void,
  ) {
    const collector = forward.answered === undefined ? undefined : new Collector();
    const losses = new LossWatch(lost);
    function sawCall(part: { type: string; id?: string; signature?: string }): void {
      if (part.type !== "tool-call" || part.id === undefined || part.signature === undefined) return;
      signatures.set(signatureKey(format, part.id), part.signature, part.signature.length);
    }
    return {
      sawEvent(event: GenerationEvent): void {
        if (event.type === "part-start") {
          sawCall(event.part);
          losses.part(event.part);
        } else if (event.type === "citation") losses.citation(event.citation);
        else if (event.type === "usage") context.record.usage = event.usage;
        else if (event.type === "finish") context.record.finishReason = wordOf(event.finish);
        collector?.push(event);
      },
      lostCitation: () => losses.note("answer.citations"),
      sawEnd(): void {
        noteLost(losses.entries);
        const result = collector?.result();
        if (result !== undefined) forward.answered?.(result, answer);
      },
    };
  }

  return {
    prepare(context, request, backend) {
      if (context.record.dropped !== undefined) context.record.dropped = []; // what an attempt lost that has failed
      const operation = askedBy(backend, request);
      const format = formatOf(request.operation);
      if (format === undefined) {
        const prepared = prepareVectors(context, request, backend, operation);
        if (prepared !== undefined) return prepared;
        const members = ownMembers(context, operation, request.model, backend);
        const bytes = request.body.bytes();
        const body = members === undefined ? bytes : withMembers(bytes, members);
        return { operation, body, edits: answerEdits(request, undefined) };
      }
      const media = prepareMedia(context, request, backend, operation);
      if (media !== undefined) return media;
      const { kind } = backend;
      const { value } = request.body;
      const metadata = metadataOf(backend, request.model);
      const passing = passThrough(format);
      const { asking } = request;
      const mayPass = operation === request.operation && asking.neutral === undefined;
      if (mayPass && !passing.mustTranslate?.(value, hasThinking(metadata?.thinking), kind.inlines === "all", kind)) {
        const isCounted = request.stream && context.settings.streaming.count_tokens;
        const counting = isCounted ? passing.askUsage?.(value, kind) : undefined;
        const prepared: Prepared = {
          operation,
          body: nativeBody(context, request, backend, passing, counting),
          hidesUsage: counting !== undefined,
          edits: answerEdits(request, passing.editAnswer?.(value, kind)),
          ...compact({ path: passing.pathOf?.(value) }),
        };
        return asking.kind === "rest" ? restOf(context, request, backend, asking.client, prepared) : prepared;
      }
      const client = asking.client ?? clientProtocol(format);
      return translate(context, request, backend, operation, client, metadata);
    },
  };
}

/** What is changed in an answer that passes: what its format wants, and the model's name where a route was asked for. */
function answerEdits({ namedAs: name }: ModelRequest, ofFormat: AnswerEdits | undefined): AnswerEdits | undefined {
  return name === undefined ? ofFormat : namedAs(name, ofFormat);
}

const encoder = new TextEncoder();

const UNCHANGED: { members?: JsonObject; lost?: readonly string[] } = {};

/** The operation by which a backend is asked; the router saw that there is one. */
function askedBy(backend: Backend, { operation, body, asking }: ModelRequest): Operation {
  const served = servedBy(backend.paths, operation) as Operation;
  const format = formatOf(served);
  if (served === operation || asking.neutral !== undefined || format === undefined) return served;
  if (backendProtocol(format).carriesSearch) return served;
  const searching = searchOperation(backend);
  return searching !== undefined && clientProtocol(operation).offersSearch?.(body.value) ? searching : served;
}

/** Refusals of the codec name the field as the client calls it. */
function encodedFor(protocol: BackendProtocol, request: GenerationRequest, target: BackendTarget): EncodedRequest {
  try {
    return protocol.encodeRequest(request, target);
  } catch (error) {
    throw error instanceof GatewayError ? inClientsWords(error, request) : error;
  }
}

/** What a backend's kind wants otherwise in a body of the client's own. */
function ownMembers(
  { clientHeaders }: RequestContext,
  operation: Operation,
  model: string,
  { kind, settings }: Backend,
): JsonObject | undefined {
  if (kind.membersOf === undefined) return undefined;
  const version = kind.versionInBody ? (clientHeaders.get(VERSION) ?? undefined) : undefined;
  const betas = kind.betasInBody ? (clientHeaders.get(BETAS) ?? undefined) : undefined;
  return kind.membersOf({ operation, model, settings, version, betas });
}

const NO_TOOLS: ReadonlySet<string> = new Set();

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

/** As the backend said it. */
function wordOf({ reason, raw }: Finish): string {
  return raw?.value ?? reason;
}
