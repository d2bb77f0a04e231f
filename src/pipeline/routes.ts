// Where the name that a client asks for becomes a model: the target of a route, or a model on the backend that the name begins
// with.

import { requireModel } from "../access/api-keys.ts";
import type { Caller } from "../access/caller.ts";
import type { BackendBoard } from "../backends/board.ts";
import { mayHoldFiles } from "../backends/kind.ts";
import { broughtBy, conventionsOf, formatOf, writesText } from "../backends/operations.ts";
import type { Feature, Overrides, TargetSettings } from "../config/sections/routes.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { usualTokensOfBody } from "../generation/token-count.ts";
import type { Eventually } from "../lib/eventually.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { lazily } from "../lib/lazily.ts";
import { isPictureBase64 } from "../media/media-types.ts";
import type { RouteSubject } from "../model-routes/conditions.ts";
import { featuresOf } from "../model-routes/features.ts";
import { type ModelRoute, type RouteQuery, type Routes, type RouteTarget, reasonOf } from "../model-routes/routes.ts";
import { resolveBackendKind } from "../names.ts";
import { clientProtocol } from "../protocols/registry.ts";
import { settingsFor } from "../protocols/request-settings.ts";
import type { RequestContext } from "./context.ts";
import { type ModelRequest, onlyBackend } from "./model-request.ts";
import { conversationKey, usersOf } from "./session-key.ts";

interface RoutingParts {
  /** Undefined: none are configured. */
  routes: Routes | undefined;
  watch: { board: BackendBoard };
  /** Looks for a model that no backend seems to serve. */
  isKnown(model: string): Promise<boolean>;
  wallTime(): number;
}

export type ModelNames = ReturnType<typeof createModelNames>;

export function createModelNames({ routes, watch, isKnown, wallTime }: RoutingParts) {
  const isServed = (model: string) => watch.board.serving(model).length > 0;

  /** "backend/model" or "type/model"; undefined where the whole name is a model's own, or its beginning names no backend. */
  function pinOf(name: string): { model: string; onlyAt: readonly string[] } | undefined {
    const slash = name.indexOf("/");
    if (slash <= 0 || slash === name.length - 1 || isServed(name)) return undefined;
    const [first, model] = [name.slice(0, slash), name.slice(slash + 1)];
    const { entries } = watch.board;
    if (entries.some(({ backend }) => backend.name === first)) return { model, onlyAt: [first] };
    const kind = resolveBackendKind(first);
    const ofKind =
      kind === undefined ? [] : watch.board.serving(model).filter(({ backend }) => backend.kind.name === kind);
    return ofKind.length === 0 ? undefined : { model, onlyAt: ofKind.map(({ backend }) => backend.name) };
  }

  function routeTo(context: RequestContext, asked: ModelRequest, route: ModelRoute): ModelRequest {
    const { record } = context;
    const { target, others, steps } = (routes as Routes).choose(route, queryOf(context, asked));
    record.askArms(target.arms);
    record.routeReason = reasonOf(steps);
    record.routeLot = steps[0]?.lot;
    const routed = { target, others, body: asked.body, route };
    return aimedAt({ ...asked, namedAs: asked.askedModel, routed }, target);
  }

  function queryOf(context: RequestContext, asked: ModelRequest): RouteQuery {
    return {
      subject: lazily(() => subjectOf(context, asked, wallTime())),
      session(sticky) {
        if (sticky === "none") return undefined;
        if (sticky === "conversation") return conversationKey(context, asked);
        if (sticky === "key") return context.caller?.keyId;
        return usersOf(context, asked).find((user) => user !== undefined);
      },
      holds: holderOf(watch.board, asked),
    };
  }

  return {
    /** Throws 403 for a name that the caller's key may not use; a model that it may use can be asked of one backend, too. */
    requireAllowed(caller: Caller | undefined, name: string): void {
      const mayBePin = caller?.allowsModel?.(name) === false && name.includes("/") && routes?.find(name) === undefined;
      const model = mayBePin ? pinOf(name)?.model : undefined;
      // A key that names a route may use the route, not a model of the same name.
      const isItsModel =
        model !== undefined && routes?.find(model) === undefined && caller?.allowsModel?.(model) === true;
      requireModel(caller, isItsModel ? model : name);
    },

    /** A promise only where a default route may hide a model that has to be looked for. */
    resolve(context: RequestContext, asked: ModelRequest): Eventually<ModelRequest> {
      const { model } = asked;
      const route = routes?.find(model);
      if (route !== undefined) return routeTo(context, asked, route);
      const pin = model.includes("/") ? pinOf(model) : undefined;
      if (pin !== undefined) {
        return { ...asked, ...pin, namedAs: asked.askedModel, body: asked.body.with({ model: pin.model }) };
      }
      const last = routes?.last;
      if (last === undefined || isServed(model)) return asked;
      return isKnown(model).then((known) => (known ? asked : routeTo(context, asked, last)));
    },

    /** The models that a name may lead to: of a route all, else the model itself. */
    modelsBehind(name: string): readonly string[] {
      const route = routes?.find(name) ?? (isServed(name) ? undefined : routes?.last);
      if (route !== undefined) return (routes as Routes).modelsOf(route);
      return [(name.includes("/") ? pinOf(name)?.model : undefined) ?? name];
    },

    /** What conditions look at. */
    subjectOf: (context: RequestContext, asked: ModelRequest) => subjectOf(context, asked, wallTime()),
    isRoute: (name: string) => routes?.find(name) !== undefined,
    /** Whether the name stands for something without any alias: a route, a model, or a model on a backend. */
    isMeant: (name: string) =>
      routes?.find(name) !== undefined || isServed(name) || (name.includes("/") && pinOf(name) !== undefined),
    /** The names of routes that stand for themselves alone. */
    routes: routes?.names ?? [],
  };
}

/** The request as a target gets it. */
export function forTarget(request: ModelRequest, target: RouteTarget): ModelRequest {
  return aimedAt({ ...request }, target);
}

/** The same of a request that no other part holds. */
function aimedAt(request: ModelRequest, { model, backend, set }: RouteTarget): ModelRequest {
  const { asking, routed } = request;
  const body = routed?.body ?? request.body;
  const changes = set === undefined ? undefined : membersFor(request, body.value, set);
  const isSame = changes === undefined && body.value.model === model;
  request.model = model;
  request.body = isSame ? body : body.with({ ...changes, model });
  request.onlyAt = onlyBackend(backend);
  if (asking.kind === "neutral" && routed?.neutral !== undefined) {
    request.asking = { ...asking, neutral: withOverrides(routed.neutral, set) };
  }
  return request;
}

/** A neutral request with what a target sets. */
export function withOverrides(request: GenerationRequest, set: Overrides | undefined): GenerationRequest {
  if (set === undefined) return request;
  const { temperature, top_p: topP, seed, max_output_tokens: maxOutputTokens, reasoning_effort: effort } = set;
  const sampling = { temperature, topP, seed };
  const given = Object.entries(sampling).filter(([, value]) => value !== undefined);
  return {
    ...request,
    sampling: { ...request.sampling, ...Object.fromEntries(given) },
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(effort !== undefined && { reasoning: { ...request.reasoning, effort } }),
  };
}

/** Members of the body in the words of its format. */
function membersFor({ operation, asking }: ModelRequest, value: JsonObject, set: Overrides): JsonObject {
  const format = asking.client?.name ?? formatOf(operation);
  return settingsFor(format === undefined ? undefined : clientProtocol(format), value, set);
}

/** Whether a target has what the request refers to: a kept answer, a file, a state of its vendor. Undefined: it refers to nothing. */
function holderOf(board: BackendBoard, asked: ModelRequest): RouteQuery["holds"] {
  const { prefer, foreignFile, namesVendorState, operation } = asked;
  if (prefer === undefined && foreignFile === undefined && namesVendorState !== true) return undefined;
  return ({ model, backend: only }: Pick<TargetSettings, "model" | "backend">) =>
    board.serving(model).some(({ backend }) => {
      if (only !== undefined && backend.name !== only) return false;
      if (prefer !== undefined) return backend.name === prefer;
      return foreignFile === undefined ? backend.paths[operation] !== undefined : mayHoldFiles(backend, operation);
    });
}

function subjectOf(context: RequestContext, asked: ModelRequest, wallTimeMs: number): RouteSubject {
  const { caller, clientHeaders } = context;
  const features = lazily(() => featuresIn(asked));
  return {
    inputTokens: lazily(() => usualTokensOfBody(asked.body.value, isPictureBase64)),
    has: (feature) => features().has(feature),
    keyId: caller?.keyId,
    users: () => usersOf(context, asked),
    organizationId: caller?.organizationId,
    header: (name) => clientHeaders.get(name),
    metadata(name) {
      const { metadata } = asked.body.value;
      return isObject(metadata) ? metadata[name] : undefined;
    },
    wallTimeMs,
  };
}

const NOTHING: ReadonlySet<Feature> = new Set();

function featuresIn({ operation, asking, body }: ModelRequest): ReadonlySet<Feature> {
  const brought = broughtBy(operation);
  if (brought !== undefined) return new Set([brought]);
  if (asking.neutral !== undefined) return featuresOf(asking.neutral);
  const format = conventionsOf(operation);
  if (format === undefined || !writesText(format)) return NOTHING;
  try {
    return featuresOf(clientProtocol(format).decodeRequest(body.value));
  } catch {
    return NOTHING; // a body that only its backend understands
  }
}
