// The class of a request in the queue: of its key or its route, and lower, where the client asks for that.

import type { AdmissionSettings } from "../config/sections/admission.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { RequestContext } from "./context.ts";
import type { ModelRequest } from "./model-request.ts";

/** Where a client names the class of its request. */
export const PRIORITY_HEADER = "X-Signalbox-Priority";

const DEFAULT = "default";

type Classes = AdmissionSettings["queue"]["classes"];

/** Throws 400 where the header names a class that is not configured. */
export function queueClassOf(
  { settings, caller, clientHeaders, queueClass }: RequestContext,
  request: ModelRequest,
): string {
  const { classes } = settings.admission.queue;
  const known = (name: string | undefined) => (name !== undefined && Object.hasOwn(classes, name) ? name : undefined);
  if (queueClass !== undefined) return known(queueClass) ?? lightestOf(classes);
  const own = known(caller?.queueClass) ?? known(request.routed?.route.settings.class) ?? DEFAULT;
  const asked = askedClass(clientHeaders.get(PRIORITY_HEADER), classes) ?? classOfTier(request.body.value, classes);
  if (asked === undefined) return own;
  const highest = known(caller?.highestQueueClass) ?? own;
  const weightOf = (name: string) => classes[name]?.weight as number;
  return weightOf(asked) <= Math.max(weightOf(highest), weightOf(own)) ? asked : own;
}

/** The class with the least weight. */
export function lightestOf(classes: Classes): string {
  return sortedByWeight(classes)[0] as string;
}

function askedClass(name: string | null, classes: Classes): string | undefined {
  if (name === null || Object.hasOwn(classes, name)) return name ?? undefined;
  throw new GatewayError(
    ERRORS.invalidRequest,
    `The header ${PRIORITY_HEADER} must name a class of admission.queue.classes: ${Object.keys(classes).join(", ")}.`,
    { param: PRIORITY_HEADER },
  );
}

/** OpenAI's service_tier: flex is the class below default, priority the one above it. */
function classOfTier({ service_tier }: ModelRequest["body"]["value"], classes: Classes): string | undefined {
  if (service_tier !== "flex" && service_tier !== "priority") return undefined;
  const sorted = sortedByWeight(classes);
  return sorted[sorted.indexOf(DEFAULT) + (service_tier === "flex" ? -1 : 1)];
}

function sortedByWeight(classes: Classes): string[] {
  return Object.entries(classes)
    .toSorted(([, one], [, other]) => one.weight - other.weight)
    .map(([name]) => name);
}
