// components.responses of the OpenAPI document: the errors, with the types and codes of the catalogue.

import { ERRORS, type ErrorDefinition } from "../errors/catalog.ts";
import { COMMON_HEADERS, LIMIT_HEADERS } from "./headers.ts";
import { ref } from "./json-schema.ts";
import type { DescribedEndpoint } from "./operation.ts";

const MEANINGS: Readonly<Record<number, string>> = {
  400: "The request is not valid; `param` or `details.validation_errors` name what is at fault.",
  401: "Missing or wrong credentials.",
  403: "The caller is known, but may not do this.",
  404: "There is no such thing.",
  408: "The body did not arrive in time.",
  409: "Something else has changed meanwhile, or is in use; `details` tells what.",
  413: "The body is too large.",
  416: "The range lies outside of the file.",
  422: "The configuration is not valid; `details.validation_errors` name the fields.",
  429: "A limit is reached; Retry-After tells when to come again.",
  500: "Something unexpected; the log has the details.",
  502: "The backend could not be reached, or its answer is not usable.",
  503: "No backend can answer at the moment.",
  504: "A time limit has passed.",
};

const STANDARD = "Error";

/** The schema of its errors, which also begins the names of their responses. */
function formatOf({ errorSchema = STANDARD }: DescribedEndpoint): string {
  return errorSchema;
}

/** The error responses of an endpoint: status -> reference. */
export function errorReferences(endpoint: DescribedEndpoint): object {
  const { errors, forwardsErrors } = endpoint;
  const format = formatOf(endpoint);
  const statuses = [...new Set(errors)].sort((first, second) => first - second);
  return {
    ...Object.fromEntries(statuses.map((status) => [status, toReference(`${format}${status}`)])),
    ...(forwardsErrors && { default: toReference(`${format}OfBackend`) }),
  };
}

/** Those that the endpoints refer to. */
export function errorResponses(endpoints: readonly DescribedEndpoint[]): Record<string, object> {
  const responses: Record<string, object> = {};
  for (const format of new Set(endpoints.map(formatOf))) {
    const users = endpoints.filter((endpoint) => formatOf(endpoint) === format);
    for (const status of new Set(users.flatMap(({ errors }) => errors))) {
      responses[`${format}${status}`] = errorResponse(describe(status, format), format, status === 429);
    }
    if (users.some(({ forwardsErrors }) => forwardsErrors)) {
      responses[`${format}OfBackend`] = errorResponse("Any other error of the backend, as it came.", format, false);
    }
  }
  return responses;
}

function errorResponse(description: string, schema: string, isLimit: boolean): object {
  const headers = [...COMMON_HEADERS, ...(isLimit ? LIMIT_HEADERS : [])];
  return {
    description,
    headers: headerReferences(headers),
    content: { "application/json": { schema: ref(schema) } },
  };
}

export function headerReferences(names: readonly string[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function describe(status: number, format: string): string {
  const meaning = MEANINGS[status];
  if (meaning === undefined) throw new Error(`what the status ${status} means is not described`);
  const known: ErrorDefinition[] = Object.values(ERRORS).filter((definition) => definition.status === status);
  // Other formats have types of their own, or none.
  if (known.length === 0 || format !== STANDARD) return meaning;
  const pairs = known.map(({ type, code }) => (typeof code === "string" ? `\`${type}\` (\`${code}\`)` : `\`${type}\``));
  return `${meaning} Types and codes: ${pairs.join(", ")}.`;
}

function toReference(name: string): object {
  return { $ref: `#/components/responses/${name}` };
}
