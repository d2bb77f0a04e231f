// Builds what answers requests: routes over the pipeline, and the frame around them.

import { acceptedSecrets, createAccessControl } from "../access/api-keys.ts";
import { createClientAddressReader } from "../access/client-address.ts";
import type { KeyIdentity } from "../access/key-identity.ts";
import { hasSeveralOwners } from "../access/owner.ts";
import { createWebPageRules } from "../access/web-pages.ts";
import { NOT_BUILT, publicRoutes } from "../api/routes.ts";
import type { Operation } from "../backends/kinds.ts";
import type { Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { Clock } from "../lib/clock.ts";
import { createDeadlines, type Deadlines } from "../lib/deadlines.ts";
import { createOwnIds } from "../lib/own-ids.ts";
import type { Logger } from "../logging/logger.ts";
import { createExternalFetch, type ExternalCheck, type FetchExternal } from "../media/fetch-external.ts";
import { resolveAlias } from "../models/aliases.ts";
import { createListEnricher, type ModelMetadataSource } from "../models/metadata.ts";
import { toModelFields } from "../models/metadata-lookup.ts";
import { openApiRoutes } from "../openapi/document.ts";
import { createBridge, createSignatureMemory, type SignatureMemory } from "../pipeline/bridge.ts";
import { createDeduplicator, type Deduplicator } from "../pipeline/deduplicate.ts";
import { withEmbeddingBatches } from "../pipeline/embedding-batches.ts";
import { createFallbackChains } from "../pipeline/fallback.ts";
import { createForwarder } from "../pipeline/forward.ts";
import { type CacheParts, createGenerator, type GenerateRequest, type SharedCall } from "../pipeline/generate.ts";
import type { RequestReporter } from "../pipeline/observe.ts";
import { createResponseStore, type ResponseStore } from "../pipeline/response-store.ts";
import { withWebSearch } from "../pipeline/search.ts";
import type { PromptFiles } from "../prompts/prompt-files.ts";
import { createPrompts } from "../prompts/resolve.ts";
import { createLimiter, type Limiter } from "../rate-limit/limiter.ts";
import type { ResponseCache } from "../response-cache/cache.ts";
import { createMemoryCache } from "../response-cache/memory.ts";
import { createRecorder } from "../response-cache/recorder.ts";
import { createStrategy } from "../routing/strategies/registry.ts";
import type { SelectionStrategy } from "../routing/strategy.ts";
import { type BodyDrain, createBodyDrain } from "../server/drain-body.ts";
import type { AdminDoor, Endpoint } from "../server/endpoint.ts";
import { createHandler } from "../server/handler.ts";
import { type BodyReader, createBodyReader } from "../server/read-body.ts";
import type { TargetHandler } from "../server/request-target.ts";
import { createRouteTable, type Route } from "../server/route-table.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import { createReachability } from "../upstream/reachability.ts";
import { createSender, type Sender } from "../upstream/send.ts";
import { searchesItself } from "../web-search/native.ts";
import { createSearchProvider } from "../web-search/provider.ts";

/** What a data plane is made for; a new one stands for a new configuration. */
export interface DataPlaneFacts {
  settings: Settings;
  metadata: ModelMetadataSource;
  promptFiles: PromptFiles;
}

export interface DataPlaneOptions extends DataPlaneFacts {
  fleet: Fleet;
  transport: Transport;
  clock: Clock;
  log: Logger;
  env: Record<string, string | undefined>;
  identify: KeyIdentity;
  reporter: RequestReporter;
  limited?: (scope: string) => void;
  adminDoor: AdminDoor | undefined;
  /** The endpoints of the control plane; asked for once, so that what they hold outlives every change. */
  adminRoutes(bodies: BodyReader): Route<Endpoint>[];
}

export interface DataPlane {
  /** Every path that there is; no change of the configuration changes them. */
  readonly paths: readonly string[];
  handle: TargetHandler;
  /** The cache for requests from now on; undefined while it is off. */
  readonly cache: ResponseCache | undefined;
  /** Requests from now on are answered by these facts; those under way go on with the ones they began with. */
  update(facts: DataPlaneFacts): void;
}

/** What outlives a change of the configuration. */
interface Lasting {
  deadlines: Deadlines;
  bodies: BodyReader;
  drain: BodyDrain;
  sender: Sender;
  fetchExternal: FetchExternal & ExternalCheck;
  responses: ResponseStore;
  signatures: SignatureMemory;
  deduplicator: Deduplicator<SharedCall, UpstreamFailure>;
  /** The addresses that are open: a change of them takes a restart. */
  boundTo: readonly string[];
  /** Hears of every X-Forwarded-For that is not believed. */
  untrustedProxy(peer: string | undefined): void;
  newOwnId(): string;
  /** Endpoints that do not depend on the settings, or that look them up. */
  routes: readonly Route<Endpoint>[];
}

export function createDataPlane({ settings, metadata, promptFiles, ...options }: DataPlaneOptions): DataPlane {
  const { transport, clock, env, identify } = options;
  const { now } = clock;
  const deadlines = createDeadlines(now);
  const bodies = createBodyReader({ deadlines, now });
  const lasting: Lasting = {
    deadlines,
    bodies,
    drain: createBodyDrain({ deadlines, now }),
    sender: createSender(transport, { deadlines, reachability: createReachability(env), now }),
    fetchExternal: createExternalFetch({ deadlines, now }),
    responses: createResponseStore(now),
    signatures: createSignatureMemory(now),
    deduplicator: createDeduplicator({ now }),
    boundTo: [settings.server.bind_address].flat(),
    untrustedProxy: warnOnce(options.log),
    newOwnId: createOwnIds(Math.random),
    routes: [...openApiRoutes(), ...options.adminRoutes(bodies)],
  };
  // What counts or keeps something is made anew only when its own section has changed.
  const limiterFor = keptWhileSame(
    (facts: Settings) => [facts.rate_limiting, facts.api_keys.keys],
    (facts) =>
      createLimiter({
        settings: facts.rate_limiting,
        keyLimits: keyLimits(facts.api_keys.keys, identify),
        now,
        wallTime: clock.wallTime,
        seed: crypto.getRandomValues(new Uint32Array(1))[0] as number,
      }),
  );
  const cacheFor = keptWhileSame(
    (facts: Settings) => facts.response_cache,
    (facts) => createCache(facts.response_cache, now),
  );
  const strategyFor = keptWhileSame(
    (facts: Settings) => facts.routing,
    (facts) => createStrategy(facts.routing),
  );

  function build(facts: DataPlaneFacts) {
    const cache = cacheFor(facts.settings);
    const { handle, paths } = buildHandler(options, lasting, facts, {
      limiter: limiterFor(facts.settings),
      cache,
      strategy: strategyFor(facts.settings),
    });
    return { handle, paths, cache: cache?.store };
  }

  let running = build({ settings, metadata, promptFiles });
  return {
    paths: running.paths,
    handle: (request, server, target) => running.handle(request, server, target),
    get cache() {
      return running.cache;
    },
    update(facts) {
      running = build(facts);
    },
  };
}

/** Makes a thing again only when what it is made of is no longer the same. */
function keptWhileSame<Facts, Made>(
  partOf: (facts: Facts) => unknown,
  make: (facts: Facts) => Made,
): (facts: Facts) => Made {
  let kept: { part: unknown; made: Made } | undefined;
  return (facts) => {
    const part = partOf(facts);
    if (kept === undefined || !Bun.deepEquals(kept.part, part, true)) kept = { part, made: make(facts) };
    return kept.made;
  };
}

/** What counts or keeps something under one configuration. */
interface Changing {
  limiter: Limiter;
  cache: CacheParts | undefined;
  strategy: SelectionStrategy;
}

function buildHandler(
  { fleet, clock, log, identify, reporter, limited, adminDoor }: Omit<DataPlaneOptions, keyof DataPlaneFacts>,
  {
    deadlines,
    bodies,
    drain,
    sender,
    fetchExternal,
    responses,
    signatures,
    deduplicator,
    newOwnId,
    boundTo,
    untrustedProxy,
    routes: lastingRoutes,
  }: Lasting,
  { settings, metadata, promptFiles }: DataPlaneFacts,
  { limiter, cache, strategy }: Changing,
): { handle: TargetHandler; paths: readonly string[] } {
  const { now } = clock;
  const bridge = createBridge({
    prompts: createPrompts(settings.global_prompts, promptFiles),
    metadataOf: (backend, model) => metadata.of(model, backend.name),
    fetchExternal,
    signatures,
    clock,
    log,
  });
  const forwarder = createForwarder({
    watch: fleet,
    strategy,
    circuits: fleet.circuits,
    limits: limiter,
    sender,
    bridge,
    log,
    attempted: reporter.attempted,
    now,
    random: Math.random,
  });
  const chains = createFallbackChains(forwarder);
  const hasNative = (model: string, operation: Operation) =>
    fleet.board.candidates(model).some(({ backend }) => backend.paths[operation] !== undefined);
  const plainGenerator = createGenerator({ forwarder, chains, log, deduplicator, cache });
  const provider = createSearchProvider(settings.web_search, { deadlines, now });
  const embedder = withEmbeddingBatches(plainGenerator, (model) => hasNative(model, "embeddings"));
  const generator =
    provider === undefined
      ? embedder
      : withWebSearch(embedder, {
          provider,
          limits: { maxResults: settings.web_search.max_results, maxRounds: settings.web_search.max_rounds },
          chains,
          searchesItself: (model, operation) =>
            fleet.board.serving(model).some(({ backend }) => searchesItself(backend, operation)),
          clock,
          log,
        });
  const isShared = settings.responses.share_vendor_state || !hasSeveralOwners(settings.api_keys, identify);
  const toShownList = createListEnricher(metadata, settings.model_metadata.enrichment);
  const isReady = () => fleet.board.entries.some((entry) => entry.available);
  const routes = [
    ...publicRoutes({
      generator,
      bodies,
      now,
      begun: reporter.begun,
      isReady,
      aliases: (asked) => withAlias(asked, settings.model_aliases, (model) => fleet.board.serving(model).length > 0),
      responses: {
        store: responses,
        hasNative: (model) => hasNative(model, "responses"),
        isShared,
        fetchExternal,
      },
      hasCounter: (model) => hasNative(model, "count-tokens"),
      models: {
        listModels: async () => toShownList(await fleet.models.list()),
        findModel: (id) => fleet.models.find(id),
        allUnhealthy: () => fleet.board.entries.some(({ backend }) => backend.enabled) && !isReady(),
        modelFields({ id, backends = [] }) {
          const known = metadata.ofAny(id, backends);
          return known === undefined ? {} : toModelFields(known);
        },
      },
    }),
    ...lastingRoutes,
  ];
  const table = createRouteTable(routes, NOT_BUILT);
  const handle = createHandler({
    routes: table,
    access: createAccessControl(settings.api_keys, identify, clock.wallTime),
    webPages: createWebPageRules({
      allowedHosts: settings.server.allowed_hosts,
      allowedOrigins: settings.server.cors.allowed_origins,
      boundTo,
      keysRequired: settings.api_keys.mode === "blocking",
    }),
    adminDoor,
    limiter,
    clientAddresses: createClientAddressReader(settings.server.trusted_proxies, untrustedProxy),
    bodies,
    drain,
    settings,
    clock,
    log,
    newId: () => crypto.randomUUID(),
    newOwnId,
    finished: reporter.finished,
    ...(limited === undefined ? {} : { limited }),
  });
  return { handle, paths: table.paths };
}

/** All clients of a proxy that is not named count as one, and whoever runs it should know; once is enough. */
function warnOnce(log: Logger): Lasting["untrustedProxy"] {
  let hasWarned = false;
  return (peer) => {
    if (hasWarned) return;
    hasWarned = true;
    const message =
      "X-Forwarded-For of a peer that server.trusted_proxies does not name is ignored: its clients count as one";
    log.warn({ address: peer }, message);
  };
}

/** The request under the model that an alias leads to; its body says so too. */
function withAlias(
  asked: GenerateRequest,
  aliases: Settings["model_aliases"],
  isKnown: (model: string) => boolean,
): GenerateRequest {
  const model = resolveAlias(aliases, asked.model, isKnown(asked.model));
  if (model === asked.model) return asked;
  return { ...asked, model, body: asked.body.with({ model }) };
}

/** Requests per minute by key id. */
function keyLimits(keys: Settings["api_keys"]["keys"], identify: KeyIdentity): Map<string, number> {
  const limits = new Map<string, number>();
  for (const key of keys) {
    if (key.rate_limit === undefined) continue;
    for (const { caller } of acceptedSecrets(key, identify)) limits.set(caller.keyId, key.rate_limit);
  }
  return limits;
}

function createCache(settings: Settings["response_cache"], now: () => number): CacheParts | undefined {
  if (!settings.enabled) return undefined;
  const maxBytes = settings.max_total_size;
  return {
    store: createMemoryCache({ capacity: settings.capacity, maxBytes, now }),
    recorder: createRecorder({ maxBytes: settings.max_stream_buffer_size, maxTotalBytes: maxBytes }),
  };
}
