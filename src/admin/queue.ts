// /admin/queue: who waits for a slot at which backends, for how long, and how much each backend has to do; and the weights and longest
// waits of the classes, which operators change.

import type { AdmissionView } from "../admission/admission.ts";
import { mergePatch } from "../config/change/merge-patch.ts";
import type { AdmissionSettings } from "../config/sections/admission.ts";
import { isMapping, valueAt } from "../config/values/values.ts";
import { changed, entryDryRun, madeFor } from "../openapi/change-schemas.ts";
import {
  component,
  count,
  described,
  flag,
  list,
  mapOf,
  namedShape,
  number,
  orNull,
  schemasOf,
  shape,
  strictRequest,
  text,
  texts,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import { answerChange } from "./collection.ts";
import { adminGroup, answer, authorOf, dryRun, noteChange, versioned } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { isDryRun, queryOf } from "./query.ts";
import { invalidFields, shortened, unwrap } from "./refusals.ts";
import { baseVersionOf } from "./request.ts";

const QueueState = namedShape("QueueState", {
  enabled: flag,
  total_waiting: count,
  queues: list(
    shape({
      models: described(texts, "Of the requests that wait."),
      backends: described(texts, "Those that serve these models."),
      waiting: count,
      served_per_second: described(orNull(number), "Requests that have waited; null before the first one."),
    }),
  ),
  classes: list(shape({ class: text, weight: number, max_wait_ms: number, waiting: count })),
  backends: list(
    shape({
      backend: text,
      in_flight: count,
      max_concurrent: described(orNull(count), "Now, where it is auto; null: no limit."),
      tokens_in_flight: count,
      max_tokens_in_flight: described(orNull(count), "null: no limit."),
    }),
  ),
  waiting: described(
    list(
      shape({
        model: text,
        class: text,
        tenant: described(
          texts,
          "One name for each level of admission.queue.fair_by; empty where the caller has none.",
        ),
        waited_ms: number,
      }),
    ),
    "The 200 that have waited longest, the longest wait first.",
  ),
});
export type QueueState = ValueOf<typeof QueueState>;

const QueueChange = component(
  "QueueChange",
  strictRequest(
    {},
    {
      enabled: flag,
      classes: described(
        mapOf(strictRequest({}, { weight: number, max_wait: text })),
        "Those that change, by their names. max_wait null: that of the queue.",
      ),
      ...madeFor,
    },
  ),
);
const QueueChanged = namedShape("QueueChanged", changed, entryDryRun);

const endpoint = adminGroup("Queue", schemasOf(QueueState, QueueChange, QueueChanged));

const CLASSES = ["admission", "queue", "classes"] as const;
/** Before the fields of a request in the problems of the section. */
const SECTION = /^admission\.(queue\.)?/;

const NOTHING: AdmissionView = { waiting: [], groups: [], models: [], classes: [], backends: [] };

export function queueRoutes({ store, queue }: Pick<AdminParts, "store" | "queue">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/queue", {
      id: "getQueue",
      role: "viewer",
      summary: "Who waits for a slot at a backend, and for how long",
      answers: [jsonAnswer(QueueState, "The queue.")],
      handle: (call) => answer(call, stateOf(queue() ?? NOTHING, store.current.settings.admission)),
    }),
    endpoint("PATCH /admin/queue", {
      id: "updateQueue",
      role: "operator",
      summary: "Switch the queue on or off, and change weights and longest waits of its classes",
      description: "Classes are added and removed with the section admission.",
      parameters: [dryRun],
      body: { schema: QueueChange, example: { classes: { batch: { weight: 2, max_wait: "12h" } } } },
      changes: true,
      answers: [versioned(QueueChanged, "Changed.")],
      async handle(call, read) {
        const { enabled, classes, version } = await read();
        const result = await store.edit((document) => {
          const known = valueAt(store.view({ sections: ["admission"] }), CLASSES);
          requireClasses(Object.keys(classes ?? {}), Object.keys(known as object));
          // Those that hold by default are written with the first change of one of them: all of them would be replaced by it.
          const patch = isMapping(valueAt(document, CLASSES)) ? classes : mergePatch(known, classes);
          const queued = classes && { queue: { classes: patch } };
          return {
            sections: { admission: { ...(enabled != null && { enabled }), ...queued } },
            mode: "merge",
            baseVersion: baseVersionOf(call, version ?? undefined, store.current.version),
            dryRun: isDryRun(queryOf(call)),
            ...authorOf(call, "api", "classes of the queue"),
          };
        });
        const done = unwrap(result, { fieldOf: (field) => field.replace(SECTION, "") });
        noteChange(call, done);
        return answerChange(call, done, "The queue was changed", {});
      },
    }),
  ];
}

function requireClasses(asked: readonly string[], known: readonly string[]): void {
  const absent = asked.filter((name) => !known.includes(name));
  if (absent.length === 0) return;
  const message = `is no class of the queue; there are: ${known.join(", ")}`;
  throw invalidFields(absent.map((name) => ({ field: `classes.${shortened(name)}`, message })));
}

function stateOf(view: AdmissionView, { enabled, queue }: AdmissionSettings): QueueState {
  const waitingOf = (name: string) => view.classes.find((row) => row.class === name)?.waiting ?? 0;
  return {
    enabled,
    total_waiting: view.models.reduce((sum, { waiting }) => sum + waiting, 0),
    queues: view.groups.map(({ models, backends, waiting, perSecond }) => ({
      ...{ models: [...models], backends: [...backends], waiting },
      served_per_second: perSecond === undefined ? null : Math.round(perSecond * 100) / 100,
    })),
    classes: Object.entries(queue.classes).map(([name, { weight, max_wait = queue.max_wait }]) => ({
      ...{ class: name, weight, max_wait_ms: max_wait, waiting: waitingOf(name) },
    })),
    backends: view.backends.map(({ backend, inFlight, limit, tokens, maxTokens }) => ({
      ...{ backend, in_flight: inFlight, max_concurrent: limit ?? null },
      ...{ tokens_in_flight: tokens, max_tokens_in_flight: maxTokens ?? null },
    })),
    waiting: view.waiting.map(({ model, class: className, tenant, waitedMs }) => ({
      ...{ model, class: className, tenant: [...tenant] },
      waited_ms: Math.round(waitedMs),
    })),
  };
}
