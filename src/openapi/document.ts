// The OpenAPI 3.1 document, made of what the endpoints say of themselves.

import { freezeDeep } from "../config/store/publish.ts";
import { SERVICE_NAME, VERSION } from "../names.ts";
import { errorReferences, errorResponses, headerReferences } from "./error-responses.ts";
import { COMMON_HEADERS, HEADERS } from "./headers.ts";
import { type Schemas, text } from "./json-schema.ts";
import type { Body, DescribedAnswer, DescribedEndpoint, Parameter, Tag } from "./operation.ts";
import { configSchemas } from "./section-schemas.ts";
import { AUDIENCE_NOTES, audienceOf, SECURITY_SCHEMES, securityOf } from "./security.ts";

const TAGS: Readonly<Record<Tag, string>> = {
  Health: "Health of the process, and this document.",
  Models: "What models there are.",
  Generation: "What models are asked for.",
  Files: "Files that callers keep here, each their own.",
  Batches: "Files of requests that are answered in the background.",
  "Sign-in": "Browsers of administrators.",
  Configuration: "The configuration: see it, change it, and go back to an earlier version.",
  Backends: "The backends, one by one.",
  Keys: "The API keys, one by one.",
  Budgets: "What may be spent, and what is.",
  Queue: "Requests that wait for a slot at a backend.",
  Routes: "Names that stand for a choice of models, and their targets side by side.",
  Organizations: "What keys and tokens of one organization have together.",
  Notifications: "Webhooks that receive events.",
  Audit: "What administrators did.",
  Recordings: "What was asked and answered: kept, asked again, and rated.",
  Observation: "Health, statistics, metrics, errors and explanations.",
};

const DESCRIPTION = `Signalbox routes requests for models to the backends that serve them.

HEAD works wherever GET does. Any other method is 405 with \`Allow\`, any other path 404. Objects may get further members in
later versions. Flags in queries are \`true\` or \`false\`; \`1\`, \`0\` and a bare name, which means true, are read as well.`;

/** Keeps the order of the endpoints. */
export function openApiDocument(endpoints: readonly DescribedEndpoint[]): object {
  return freezeDeep({
    openapi: "3.1.1",
    info: {
      title: "Signalbox",
      summary: "A model routing gateway",
      description: DESCRIPTION,
      version: VERSION,
      license: { name: "Apache 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: `The ${SERVICE_NAME} that serves this document.` }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: pathItems(endpoints),
    components: {
      schemas: componentSchemas(endpoints),
      responses: errorResponses(endpoints),
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  });
}

function pathItems(endpoints: readonly DescribedEndpoint[]): Record<string, Record<string, object>> {
  const paths: Record<string, Record<string, object>> = {};
  for (const endpoint of endpoints.flatMap(variantsOf)) {
    // OpenAPI has no parameters of several segments.
    const path = (endpoint.usualPath ?? endpoint.path).replace("...}", "}");
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: toOperation(endpoint) };
  }
  return paths;
}

/** A client that is generated from the document gets a function, with exact types, for each variant. */
export function variantsOf({ variants, ...endpoint }: DescribedEndpoint): DescribedEndpoint[] {
  if (variants === undefined) return [endpoint];
  const { parameter, values } = variants;
  return Object.entries(values()).map(([value, differences]) => ({
    ...endpoint,
    ...differences,
    id: `${endpoint.id}${value.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}`,
    path: endpoint.path.replace(new RegExp(`\\{${parameter}(\\.\\.\\.)?\\}`), value),
    parameters: (endpoint.parameters ?? []).filter(({ name }) => name !== parameter),
  }));
}

function componentSchemas(endpoints: readonly DescribedEndpoint[]): Schemas {
  const ofEndpoints = new Set(endpoints.map(({ schemas }) => schemas));
  return Object.assign({}, ...ofEndpoints, configSchemas());
}

function toOperation(endpoint: DescribedEndpoint): object {
  const { id, tag, summary, description, role, parameters = [], body, answers } = endpoint;
  const audience = audienceOf(endpoint);
  const needed = role === undefined ? undefined : `Needs the role \`${role}\`.`;
  const notes = [description, needed, AUDIENCE_NOTES[audience]].filter((note) => note !== undefined && note !== "");
  return {
    operationId: id,
    ...(role !== undefined && { "x-required-role": role }),
    tags: [tag],
    summary,
    ...(notes.length > 0 && { description: notes.join(" ") }),
    security: securityOf(audience),
    ...(parameters.length > 0 && { parameters: parameters.map(toParameter) }),
    ...(body !== undefined && { requestBody: toRequestBody(body) }),
    responses: {
      ...Object.fromEntries(answers.map((answer) => [answer.status, toResponse(answer)])),
      ...errorReferences(endpoint),
    },
  };
}

function toParameter({ name, in: place, description, required = false, schema }: Parameter): object {
  return { name, in: place, description, required, schema };
}

function toRequestBody({ schema, optional = false, types = ["application/json"], example }: Body): object {
  const content = { schema, ...(example !== undefined && { example }) };
  return { required: !optional, content: Object.fromEntries(types.map((type) => [type, content])) };
}

function toResponse({
  description,
  schema,
  events,
  eventsType = "text/event-stream",
  types = [],
  headers = [],
}: DescribedAnswer): object {
  const content = {
    ...(schema !== undefined && { "application/json": { schema } }),
    // OpenAPI 3.1 cannot say what the events of a stream are like.
    ...(events !== undefined && { [eventsType]: { schema: text, "x-event-data": events } }),
    ...Object.fromEntries(types.map((type) => [type, { schema: text }])),
  };
  return { description, headers: headerReferences([...COMMON_HEADERS, ...headers]), content };
}
