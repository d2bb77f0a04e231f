// What answers requests under one configuration: the pipeline, and the APIs before it. Another configuration gets another
// data plane; requests under way go on with the one they began with.

import { createAccessControl } from "../access/api-keys.ts";
import { createClientAddressReader } from "../access/client-address.ts";
import type { KeyIdentity } from "../access/key-identity.ts";
import { hasSeveralOwners } from "../access/owner.ts";
import { createWebPageRules } from "../access/web-pages.ts";
import { ADMIN_PATHS } from "../admin/paths.ts";
import type { UploadParts } from "../api/file-upload.ts";
import { errorsAt } from "../api/messages.ts";
import { NOT_BUILT, type PublicApiParts, publicRoutes } from "../api/routes.ts";
import { mayHoldFiles, type Operation } from "../backends/kinds.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Settings } from "../config/sections/registry.ts";
import { DASHBOARD_PATHS } from "../dashboard/paths.ts";
import type { FilesInUse } from "../files/file-store.ts";
import { canBeAsked } from "../fleet/can-be-asked.ts";
import type { ServingFleet } from "../fleet/fleet.ts";
import { lazily } from "../lib/lazily.ts";
import { createExternalFetch } from "../media/fetch-external.ts";
import { openHosts } from "../media/links.ts";
import { resolveAlias } from "../models/aliases.ts";
import { createListEnricher, createModelMetadata, type ModelMetadataSource } from "../models/metadata.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import { openApiRoute } from "../openapi/route.ts";
import { type BridgeParts, createBridge } from "../pipeline/bridge.ts";
import { withEmbeddingBatches } from "../pipeline/embedding-batches.ts";
import { createFallbackChains } from "../pipeline/fallback.ts";
import { createForwarder } from "../pipeline/forward.ts";
import { createGenerator, type FlightsElsewhere } from "../pipeline/generate.ts";
import { createMediaFit } from "../pipeline/media-fit.ts";
import type { ModelRequest } from "../pipeline/model-request.ts";
import { createNeutralEntry } from "../pipeline/neutral-entry.ts";
import type { RequestReporter } from "../pipeline/observe.ts";
import { withWebSearch } from "../pipeline/search.ts";
import type { PromptFiles } from "../prompts/prompt-files.ts";
import { createPrompts } from "../prompts/resolve.ts";
import { createHandler, type HandlerParts } from "../server/handler.ts";
import type { TargetHandler } from "../server/request-target.ts";
import { createRouteTable, type RouteTable } from "../server/route-table.ts";
import { searchesItself } from "../web-search/native.ts";
import { createSearchProvider } from "../web-search/provider.ts";
import type { Kept } from "./kept.ts";
import type { KvIndexOwner } from "./kv-index-in-use.ts";
import type { Lasting } from "./lasting.ts";

/** What a data plane is made of, whatever the configuration says. */
export interface DataPlaneParts extends Pick<HandlerParts, "adminDoor" | "limited" | "clock" | "log"> {
  lasting: Lasting;
  files: FilesInUse;
  /** An upload is over. */
  uploaded: UploadParts["uploaded"];
  fleet: ServingFleet;
  kvIndex: Pick<KvIndexOwner, "strategyOver" | "prefixes">;
  /** Undefined: this is the only process. */
  flights?: FlightsElsewhere | undefined;
  reporter: RequestReporter;
  identify: KeyIdentity;
  metrics: readonly DescribedEndpoint[];
  /** Made once, whatever the settings become, and when it is first asked for: few gateways are asked at all. */
  adminTable: () => Promise<RouteTable<DescribedEndpoint>>;
}

/** What one is made for. */
export interface Configured {
  settings: Settings;
  metadata: ModelMetadataSource;
  promptFiles: PromptFiles;
}

export function configuredBy({
  settings,
  attachments: { metadata, promptFiles },
}: Pick<ConfigSnapshot, "settings" | "attachments">): Configured {
  return { settings, metadata: createModelMetadata({ backends: settings.backends, external: metadata }), promptFiles };
}

export function buildDataPlane(parts: DataPlaneParts, kept: Kept, configured: Configured) {
  const { adminTable, metrics } = parts;
  const pipeline = buildPipeline(parts, kept, configured);
  const publicApi = publicApiParts(parts, configured, pipeline);
  const openApi = openApiRoute(async () => [...table.endpoints, ...(await adminTable()).endpoints]);
  const table = createRouteTable([...publicRoutes(publicApi), ...metrics, openApi], {
    notBuilt: NOT_BUILT,
    elsewhere: [...ADMIN_PATHS, ...DASHBOARD_PATHS],
  });
  const frame = frameParts(parts, kept, configured);
  const adminHandler = lazily(async () => createHandler({ ...frame, routes: await adminTable() }));
  const handleAdmin: TargetHandler = async (request, server, target) => (await adminHandler())(request, server, target);
  return {
    /** Of the public API; no change of the configuration changes them. */
    paths: table.paths,
    handle: createHandler({ ...frame, routes: table, errorsAt }),
    handleAdmin,
    ...createNeutralEntry({ ...frame, ...publicApi, pipeline, reporter: parts.reporter }),
  };
}

type Pipeline = ReturnType<typeof buildPipeline>;

/** The way of a request from the pipeline's side. */
function buildPipeline(parts: DataPlaneParts, kept: Kept, configured: Configured) {
  const { lasting, fleet, kvIndex, reporter, clock, log } = parts;
  const { settings, metadata, promptFiles } = configured;
  const prompts = createPrompts(settings.global_prompts, promptFiles);
  const { deadlines } = lasting;
  const fetchExternal = createExternalFetch({
    deadlines,
    now: clock.now,
    ...openHosts(settings.server.allowed_link_hosts),
  });
  const metadataOf: BridgeParts["metadataOf"] = (backend, model) => metadata.of(model, backend.name);
  const listedAs: BridgeParts["listedAs"] = (backendName, model) => fleet.board.listedAs(backendName, model);
  const forwarder = createForwarder({
    media: createMediaFit({
      refusedMedia: lasting.refusedMedia,
      metadataOf,
      configuredOf: (backend, model) => metadata.configuredOf(model, backend.name),
    }),
    watch: fleet,
    strategy: kvIndex.strategyOver(kept.strategy),
    prefixes: kvIndex.prefixes(prompts),
    circuits: fleet.circuits,
    limits: kept.limiter,
    sender: lasting.sender,
    bridge: createBridge({ ...lasting, fetchExternal, prompts, metadataOf, listedAs, clock, log }),
    log,
    attempted: reporter.attempted,
    now: clock.now,
    random: Math.random,
  });
  const chains = createFallbackChains(forwarder);
  const plain = createGenerator({
    ...lasting,
    flights: parts.flights,
    forwarder,
    chains,
    log,
    cache: kept.cache,
    promptsDigest: prompts.digest,
  });
  const embedder = withEmbeddingBatches(plain, (model) => hasNative(fleet, model, "embeddings"));
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

function publicApiParts(parts: DataPlaneParts, { settings, metadata }: Configured, { generate, chains }: Pipeline) {
  const { lasting, files, uploaded, fleet, reporter, identify, clock, log } = parts;
  const toShownList = createListEnricher(metadata, settings.model_metadata.enrichment);
  const isServed = (model: string) => fleet.board.serving(model).length > 0;
  return {
    generate,
    files,
    uploads: { deadlines: lasting.deadlines, now: clock.now, uploaded },
    bodies: lasting.bodies,
    now: clock.now,
    begun: reporter.begun,
    isReady: () => fleet.board.entries.some((entry) => canBeAsked(entry, fleet.circuits)),
    aliases: (asked: ModelRequest) => withAlias(asked, settings.model_aliases, isServed),
    responses: {
      store: lasting.responses,
      hasNative: (model) => hasNative(fleet, model, "responses"),
      isShared: settings.responses.share_vendor_state || !hasSeveralOwners(settings.api_keys, identify),
    },
    attachments: {
      openHosts: openHosts(settings.server.allowed_link_hosts),
      isServed,
      keepsFiles: (model, operation) =>
        fleet.board.serving(model).some(({ backend }) => mayHoldFiles(backend, operation)),
      chainOf: chains.chainOf,
      log,
    },
    hasCounter: (model) => hasNative(fleet, model, "count-tokens"),
    models: { fleet, metadata, toShownList },
  } satisfies PublicApiParts;
}

/** What the frame of every request needs, of the public API and of the admin API. */
function frameParts(parts: DataPlaneParts, { limiter }: Kept, { settings }: Configured) {
  const { lasting, reporter, identify, clock } = parts;
  const { api_keys, server } = settings;
  return {
    ...lasting,
    ...parts,
    access: createAccessControl(api_keys, identify, clock.wallTime),
    webPages: createWebPageRules({
      allowedHosts: server.allowed_hosts,
      allowedOrigins: server.cors.allowed_origins,
      boundTo: lasting.boundTo,
      keysRequired: api_keys.mode === "blocking",
    }),
    limiter,
    clientAddresses: createClientAddressReader(server.trusted_proxies, lasting.untrustedProxy),
    settings,
    newId: () => crypto.randomUUID(),
    finished: reporter.finished,
  } satisfies Omit<HandlerParts, "routes">;
}

/** Whether a backend that can take requests for the model has the operation itself. */
function hasNative({ board }: Pick<ServingFleet, "board">, model: string, operation: Operation): boolean {
  return board.candidates(model).some(({ backend }) => backend.paths[operation] !== undefined);
}

/** The request under the model that an alias leads to; its body says so too. */
function withAlias(
  asked: ModelRequest,
  aliases: Settings["model_aliases"],
  isKnown: (model: string) => boolean,
): ModelRequest {
  const model = resolveAlias(aliases, asked.model, isKnown(asked.model));
  if (model === asked.model) return asked;
  return { ...asked, model, body: asked.body.with({ model }) };
}
