// The models that an agent offers to its editor, and what is asked of them.

import type { AcpModels, OfferedModel } from "../acp/parts.ts";
import type { Backend } from "../backends/backend.ts";
import type { BackendBoard, BackendEntry } from "../backends/board.ts";
import { conversationFormat, converses } from "../backends/operations.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { ModelMetadata } from "../config/sections/metadata-entry.ts";
import type { RouteSettings } from "../config/sections/routes.ts";
import { effortLevels, USUAL_EFFORTS } from "../generation/reasoning-effort.ts";
import type { Effort } from "../generation/request.ts";
import { unlessAborted } from "../lib/abortable-delay.ts";
import { isGlob } from "../lib/glob.ts";
import { resolveAlias } from "../models/aliases.ts";
import { isChatModel } from "../models/chat-models.ts";
import { createModelMetadata, type ModelMetadataSource } from "../models/metadata.ts";
import { backendProtocol } from "../protocols/registry.ts";
import type { Gateway } from "../runtime/gateway.ts";

interface AgentModelsParts {
  /** Once it is composed; rejects when it cannot be. */
  gateway(): Promise<Pick<Gateway, "generate"> & { fleet: Pick<Gateway["fleet"], "board" | "models"> }>;
  snapshot(): ConfigSnapshot;
}

export function createAgentModels({ gateway, snapshot }: AgentModelsParts): AcpModels {
  const metadataOf = metadataPerSnapshot();
  let board: () => BackendBoard | undefined = () => undefined;
  const composed = async () => {
    const found = await gateway();
    board = () => found.fleet.board;
    return found;
  };

  return {
    async *generate(request, { signal }) {
      const { generate } = await unlessAborted(composed(), signal);
      yield* generate(request, { signal });
    },
    contextWindow(model) {
      const serving = board()?.serving(model) ?? [];
      const known = resolveAlias(snapshot().settings.model_aliases, model, serving.length > 0);
      const backends = (board()?.serving(known) ?? []).map(({ backend }) => backend.name);
      return metadataOf(snapshot()).ofAny(known, backends)?.limits?.context_window;
    },
    async offered(signal) {
      const { fleet } = await unlessAborted(composed(), signal);
      const list = await unlessAborted(fleet.models.list(), signal);
      const metadata = metadataOf(snapshot());
      const models = list.flatMap(({ id, backends }) => {
        const facts = metadata.ofAny(id, backends);
        const chatting = fleet.board.candidates(id).filter(({ backend }) => converses(backend));
        return chatting.length > 0 && isChatModel(id, facts?.capabilities) ? [toOffered(id, facts, chatting)] : [];
      });
      const { acp, routes } = snapshot().settings;
      models.unshift(...routesAmong(models, routes));
      const { model } = acp;
      if (model === undefined) return models;
      // It may be an alias, or have a fallback chain: a model that no backend lists can have an answer, too.
      const first = models.find(({ id }) => id === model) ?? toOffered(model, metadata.ofAny(model, []), []);
      return [first, ...models.filter((each) => each !== first)];
    },
  };
}

/** A route is offered while one of its models is, with what that one takes. */
function routesAmong(models: readonly OfferedModel[], routes: readonly RouteSettings[]): OfferedModel[] {
  return routes.flatMap(({ name, targets }) => {
    const first = models.find(({ id }) => targets.some((target) => target.model === id));
    return first === undefined || isGlob(name) ? [] : [{ ...first, id: name, name }];
  });
}

function toOffered(id: string, facts: ModelMetadata | undefined, serving: readonly BackendEntry[]): OfferedModel {
  const { display_name, summary, capabilities } = facts ?? {};
  return {
    id,
    name: display_name ?? id,
    ...(summary !== undefined && { description: summary }),
    efforts: effortsOf(id, facts, serving),
    // The pipeline refuses pictures only where it is known that the model sees none.
    images: capabilities === undefined || capabilities.includes("vision"),
    audio: capabilities?.includes("audio") === true,
  };
}

/** Those that the model has on every backend; none where it is not known to reason. */
function effortsOf(model: string, facts: ModelMetadata | undefined, serving: readonly BackendEntry[]): Effort[] {
  const { capabilities } = facts ?? {};
  const mayReason = ({ backend: { kind } }: BackendEntry) =>
    capabilities === undefined ? kind.efforts !== USUAL_EFFORTS : capabilities.includes("reasoning");
  if (serving.length === 0 || !serving.every(mayReason)) return [];
  const [first = [], ...others] = serving.map(({ backend }) => levelsOn(backend, model));
  return first.filter((effort) => others.every((levels) => levels.includes(effort)));
}

function levelsOn(backend: Backend, model: string): Effort[] {
  const { kind } = backend;
  const format = conversationFormat(backend);
  const known = format && backendProtocol(format).effortLevels?.(model);
  return effortLevels({ kind, model }).filter((effort) => known?.includes(effort) ?? true);
}

function metadataPerSnapshot(): (snapshot: ConfigSnapshot) => ModelMetadataSource {
  let made: { for: ConfigSnapshot; source: ModelMetadataSource } | undefined;
  return (snapshot) => {
    if (made?.for !== snapshot) {
      const { settings, attachments } = snapshot;
      const source = createModelMetadata({
        backends: settings.backends,
        external: attachments.metadata,
        facts: attachments.facts,
      });
      made = { for: snapshot, source };
    }
    return made.source;
  };
}
