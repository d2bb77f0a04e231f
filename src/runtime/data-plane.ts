// What answers requests under one configuration: the pipeline, and the APIs before it. Another configuration gets another
// data plane; requests under way go on with the one they began with.

import { createAccessControl, type TokenVerifier } from "../access/api-keys.ts";
import { createClientAddressReader } from "../access/client-address.ts";
import { hasSeveralOwners } from "../access/owner.ts";
import { createWebPageRules } from "../access/web-pages.ts";
import { ADMIN_PATHS } from "../admin/paths.ts";
import type { Admission } from "../admission/admission.ts";
import { errorsAt } from "../api/errors-at.ts";
import { NOT_BUILT, type PublicApiParts, publicRoutes } from "../api/routes.ts";
import { hasNative } from "../backends/board.ts";
import { mayHoldFiles } from "../backends/kind.ts";
import type { Budgets } from "../budgets/budgets.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { currencyOf } from "../config/sections/currency.ts";
import type { Settings } from "../config/sections/registry.ts";
import { DASHBOARD_PATHS } from "../dashboard/paths.ts";
import type { FilesInUse } from "../files/file-store.ts";
import { canBeAsked } from "../fleet/can-be-asked.ts";
import type { HookInUse } from "../hooks/hooks-part.ts";
import { lazily } from "../lib/lazily.ts";
import { createExternalFetch } from "../media/fetch-external.ts";
import { openHosts } from "../media/links.ts";
import type { Routes } from "../model-routes/routes.ts";
import { createListEnricher, createModelMetadata, type ModelMetadataSource } from "../models/metadata.ts";
import { pricesIn } from "../models/prices.ts";
import { openApiRoute } from "../openapi/route.ts";
import { type BridgeParts, createBridge } from "../pipeline/bridge.ts";
import { withEmbeddingBatches } from "../pipeline/embedding-batches.ts";
import { createFallbackChains } from "../pipeline/fallback.ts";
import { createForwarder } from "../pipeline/forward.ts";
import { createGenerator } from "../pipeline/generate.ts";
import { createHookAsker } from "../pipeline/hook-asks.ts";
import { withHookedAnswers } from "../pipeline/hooked-answers.ts";
import type { KvIndexPart } from "../pipeline/kv-index-part.ts";
import { createMediaFit } from "../pipeline/media-fit.ts";
import { withMirrors } from "../pipeline/mirrors.ts";
import { type ModelRequest, withAlias } from "../pipeline/model-request.ts";
import { createNeutralEntry } from "../pipeline/neutral-entry.ts";
import { createRequestHooks } from "../pipeline/request-hooks.ts";
import { createModelNames } from "../pipeline/routes.ts";
import { withWebSearch } from "../pipeline/search.ts";
import { createSpending } from "../pipeline/spending.ts";
import { createTurns } from "../pipeline/turns.ts";
import { mostInputsOf } from "../pipeline/vector-bridge.ts";
import { createVendorReader } from "../pipeline/vendor-answer.ts";
import type { PromptFiles } from "../prompts/prompt-files.ts";
import { createPrompts } from "../prompts/resolve.ts";
import type { Limiter } from "../rate-limit/limiter.ts";
import type { RecordingPart } from "../recording/recording-part.ts";
import type { CacheInUse } from "../response-cache/cache.ts";
import { hasOperation } from "../routing/router.ts";
import type { SelectionStrategy } from "../routing/strategy.ts";
import { createHandler, type HandlerParts } from "../server/handler.ts";
import type { TargetHandler } from "../server/request-target.ts";
import { createRouteTable } from "../server/route-table.ts";
import { nanosOf } from "../stats/costs.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import { searchesItself } from "../web-search/native.ts";
import { createSearchProvider } from "../web-search/provider.ts";
import type { ProcessState } from "./process-state.ts";
import type { Surroundings } from "./surroundings.ts";

interface DataPlaneParts {
  state: ProcessState;
  limiter: Limiter;
  budgets: Budgets;
  recording: Pick<RecordingPart, "recorderFor">;
  /** Undefined while no request waits for slots. */
  admission: Admission | undefined;
  /** Undefined while the cache is off. */
  cache: CacheInUse | undefined;
  strategy: SelectionStrategy;
  /** Undefined where none are configured. */
  routes: Routes | undefined;
  /** Undefined where none are configured. */
  hooks: readonly HookInUse[] | undefined;
  files: { inUse: FilesInUse };
  kvIndex: Pick<KvIndexPart, "strategyOver" | "prefixes">;
  /** Undefined where no issuer of tokens is configured. */
  tokens: TokenVerifier | undefined;
}

/** The configuration that a data plane is made for. */
interface Configured {
  settings: Settings;
  metadata: ModelMetadataSource;
  promptFiles: PromptFiles;
}

export function buildDataPlane(
  around: Surroundings,
  parts: DataPlaneParts,
  { settings, attachments }: Pick<ConfigSnapshot, "settings" | "attachments">,
) {
  const { adminTable, metrics, ownUsage, batches } = around;
  const metadata = createModelMetadata({
    backends: settings.backends,
    external: attachments.metadata,
    facts: attachments.facts,
  });
  const configured: Configured = { settings, metadata, promptFiles: attachments.promptFiles };
  const pipeline = buildPipeline(around, parts, configured);
  const plainApi = publicApiParts(around, parts, configured, pipeline);
  const hooks = parts.hooks && requestHooks(around, parts.hooks, parts.state, plainApi);
  const publicApi = { ...plainApi, ...hooks };
  const openApi = openApiRoute(async () => [...table.endpoints, ...(await adminTable()).endpoints]);
  const table = createRouteTable([...publicRoutes(publicApi), ...ownUsage, ...batches, ...metrics, openApi], {
    notBuilt: NOT_BUILT,
    elsewhere: [...ADMIN_PATHS, ...DASHBOARD_PATHS],
  });
  const frame = frameParts(around, parts, settings);
  const adminHandler = lazily(async () =>
    createHandler({ ...frame, routes: await adminTable(), answered: around.audit?.answered }),
  );
  const handleAdmin: TargetHandler = async (request, server, target) => (await adminHandler())(request, server, target);
  return {
    /** Of the public API; no change of the configuration changes them. */
    paths: table.paths,
    handle: createHandler({ ...frame, routes: table, errorsAt }),
    handleAdmin,
    ...createNeutralEntry({
      pipeline,
      access: frame.access,
      limiter: parts.limiter,
      reporter: around.reporter,
      limited: around.happened.rateLimited,
      aliases: publicApi.aliases,
      names: publicApi.names,
      hooks: hooks?.hooks,
      settings,
      clock: around.clock,
      newOwnId: parts.state.newOwnId,
    }),
  };
}

type Pipeline = ReturnType<typeof buildPipeline>;

/** The way of a request from the pipeline's side. */
function buildPipeline(around: Surroundings, parts: DataPlaneParts, configured: Configured) {
  const { fleet, reporter, clock, log } = around;
  const { state, kvIndex, cache } = parts;
  const { deadlines, sender, signatures, deduplicator, refusedMedia, averages } = state;
  const { settings, metadata, promptFiles } = configured;
  const prompts = createPrompts(settings.global_prompts, promptFiles);
  const fetchExternal = createExternalFetch({
    deadlines,
    now: clock.now,
    ...openHosts(settings.server.allowed_link_hosts),
  });
  const metadataOf: BridgeParts["metadataOf"] = (backend, model) => metadata.of(model, backend.name);
  const listedAs: BridgeParts["listedAs"] = (backendName, model) => fleet.board.listedAs(backendName, model);
  const { budgets, admission } = parts;
  const spending = createSpending({
    budgets,
    averages,
    priceOf: pricesIn(metadata),
    metadataOf: metadata.of,
    currency: currencyOf(settings),
    wallTime: clock.wallTime,
    log,
  });
  const asking = {
    spending,
    averages,
    turns: admission && turnsOf(around, admission, averages),
    media: createMediaFit({
      refusedMedia,
      metadataOf,
      configuredOf: (backend, model) => metadata.configuredOf(model, backend.name),
    }),
    watch: fleet,
    strategy: kvIndex.strategyOver(parts.strategy),
    prefixes: kvIndex.prefixes(prompts),
    circuits: fleet.circuits,
    limits: parts.limiter,
    sender,
    bridge: createBridge({ signatures, fetchExternal, prompts, metadataOf, listedAs, clock, log }),
    log,
    attempted: reporter.attempted,
    now: clock.now,
    random: Math.random,
  };
  const forwarder = createForwarder(asking);
  const chains = createFallbackChains(forwarder, createVendorReader(asking));
  const own = createGenerator({
    deduplicator,
    flights: around.flights,
    forwarder,
    chains,
    spending,
    log,
    cache,
    promptsDigest: prompts.digest,
  });
  const hasMirrors = settings.routes.some(({ mirror }) => mirror !== undefined);
  const plain = hasMirrors
    ? withMirrors(own, {
        ...{ forwarder, reporter, clock, log },
        memory: state.mirrored,
        random: Math.random,
        newOwnId: state.newOwnId,
      })
    : own;
  const embedder = withEmbeddingBatches(plain, (model) => mostInputsOf(fleet.board, model));
  const { max_results: maxResults, max_rounds: maxRounds } = settings.web_search;
  const provider = createSearchProvider(settings.web_search, { deadlines, now: clock.now });
  if (provider === undefined) return { forwarder, chains, log, generate: embedder };
  const generate = withWebSearch(embedder, {
    provider,
    limits: { maxResults, maxRounds },
    chains,
    searchesItself: (model, operation) =>
      fleet.board.serving(model).some(({ backend }) => searchesItself(backend, operation)),
    clock,
    log,
  });
  return { forwarder, chains, log, generate };
}

/** What requests meet of hooks: before routing, and on the way of their answers. */
function requestHooks(
  { happened: { hookCalled: called }, reporter, clock, log }: Surroundings,
  hooks: readonly HookInUse[],
  { newOwnId }: ProcessState,
  { generate, names, aliases }: ReturnType<typeof publicApiParts>,
) {
  const { now, wallTime } = clock;
  const asker = createHookAsker({ generate, names, aliases, reporter, now, newOwnId, log });
  return {
    hooks: createRequestHooks({ hooks, asker, called, now, wallTime }),
    generate: withHookedAnswers(generate, { wallTime, log }),
  };
}

/** What a request does in the queue. */
function turnsOf({ fleet, clock, happened }: Surroundings, admission: Admission, averages: ProcessState["averages"]) {
  const { queueWaited: waited, queueShed: shed } = happened;
  return createTurns({ admission, averages, watch: fleet, now: clock.now, waited, shed });
}

function publicApiParts(
  around: Surroundings,
  { state, files, budgets, routes, recording }: DataPlaneParts,
  { settings, metadata }: Configured,
  { generate, chains }: Pipeline,
) {
  const { fleet, reporter, identify, clock, log, responses, happened } = around;
  const toShownList = createListEnricher(metadata, settings.model_metadata.enrichment);
  const isServed = (model: string) => fleet.board.serving(model).length > 0;
  const names = createModelNames({
    routes,
    watch: fleet,
    isKnown: async (model) => (await fleet.models.find(model)) !== undefined,
    wallTime: clock.wallTime,
  });
  const { modelsBehind } = names;
  const { share_vendor_state } = settings.responses;
  const isShared = share_vendor_state || !hasSeveralOwners(settings.api_keys, identify);
  return {
    generate,
    names,
    files: files.inUse,
    uploads: { deadlines: state.deadlines, now: clock.now, uploaded: happened.fileUploaded },
    bodies: state.bodies,
    now: clock.now,
    wallTime: clock.wallTime,
    begun: reporter.begun,
    recorder: recording.recorderFor(settings, costsBy(metadata)),
    isReady: () => fleet.board.entries.some((entry) => canBeAsked(entry, fleet.circuits)),
    aliases: (asked: ModelRequest) => withAlias(asked, settings.model_aliases, names.isMeant(asked.model)),
    responses: {
      store: responses,
      hasNative: (name) => modelsBehind(name).some((model) => hasNative(fleet.board, model, "responses")),
      isShared: () => isShared && (share_vendor_state || around.storedKeys.isEmpty),
    },
    attachments: {
      openHosts: openHosts(settings.server.allowed_link_hosts),
      isServed,
      keepsFiles: (model, operation) =>
        fleet.board.serving(model).some(({ backend }) => mayHoldFiles(backend, operation)),
      modelsBehind: (context, name) =>
        modelsBehind(name).flatMap((model) => [model, ...chains.chainOf(context, model)]),
      log,
    },
    hasCounter: (model, operation) => fleet.board.candidates(model).some((entry) => hasOperation(entry, operation)),
    models: { fleet, metadata, toShownList, names },
    limits: settings.rate_limiting,
    budgets,
    currency: currencyOf(settings),
  } satisfies PublicApiParts;
}

/** In 10^-9 of the currency's unit. */
function costsBy(metadata: ModelMetadataSource): (record: RequestRecord) => number {
  const priceOf = pricesIn(metadata);
  return ({ usage, answeredBy, model, backend }) =>
    usage === undefined ? 0 : nanosOf(usage, priceOf(answeredBy ?? model, backend));
}

/** Parts for the frame of every request, of the public API and of the admin API. */
function frameParts(around: Surroundings, { state, limiter, tokens }: DataPlaneParts, settings: Settings) {
  const { identify, adminDoor, reporter, happened, snapshot, clock, log } = around;
  const { api_keys, server } = settings;
  return {
    access: createAccessControl(settings, identify, clock.wallTime, tokens, around.storedKeys),
    adminDoor,
    webPages: createWebPageRules({
      allowedHosts: server.allowed_hosts,
      allowedOrigins: server.cors.allowed_origins,
      // Those that are open; a change of them takes a restart.
      boundTo: [snapshot.settings.server.bind_address].flat(),
      keysRequired: api_keys.mode === "blocking",
    }),
    limiter,
    limited: happened.rateLimited,
    clientAddresses: createClientAddressReader(server.trusted_proxies, state.untrustedProxy),
    settings,
    bodies: state.bodies,
    drain: state.drain,
    newId: () => crypto.randomUUID(),
    newOwnId: state.newOwnId,
    finished: reporter.finished,
    clock,
    log,
  } satisfies Omit<HandlerParts, "routes">;
}
