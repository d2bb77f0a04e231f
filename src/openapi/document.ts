// The OpenAPI 3.1 document, made of the operations and of the schemas that validate; and the route that serves it.

import { freezeDeep } from "../config/store/publish.ts";
import { SERVICE_NAME, VERSION } from "../names.ts";
import type { Endpoint } from "../server/endpoint.ts";
import { errorReferences, errorResponses, headerReferences } from "./error-responses.ts";
import { COMMON_HEADERS, HEADERS } from "./headers.ts";
import { text } from "./json-schema.ts";
import type { Answer, Body, Operation, Parameter, Tag } from "./operation.ts";
import { OPERATIONS } from "./operations.ts";
import { componentSchemas } from "./schemas.ts";
import { AUDIENCE_NOTES, SECURITY_SCHEMES, securityOf } from "./security.ts";

const TAGS: Readonly<Record<Tag, string>> = {
  Health: "Health of the process, and this document.",
  Models: "What models there are.",
  Generation: "What models are asked for.",
  Configuration: "The configuration: see it, change it, and go back to an earlier version.",
  Backends: "The backends, one by one.",
  Keys: "The API keys, one by one.",
  Observation: "Health, statistics, metrics, errors and explanations.",
};

const DESCRIPTION = `Signalbox routes requests for models to the backends that serve them.

HEAD works wherever GET does. Any other method is 405 with \`Allow\`, any other path 404. Objects may get further members in
later versions.`;

/** The route of the document, which is made when it is asked for first. */
export function openApiRoutes(): Endpoint[] {
  let body: string | undefined;
  return [
    {
      method: "GET",
      path: "/openapi.json",
      access: "open",
      handle({ headers }) {
        body ??= JSON.stringify(openApiDocument());
        return new Response(body, { headers: { ...headers, "Content-Type": "application/json" } });
      },
    },
  ];
}

export function openApiDocument(): object {
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
    paths: pathItems(),
    components: {
      schemas: componentSchemas(),
      responses: errorResponses(OPERATIONS),
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  });
}

function pathItems(): Record<string, Record<string, object>> {
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of OPERATIONS) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: toOperation(operation) };
  }
  return paths;
}

function toOperation(operation: Operation): object {
  const { id, tag, audience, summary, description, parameters = [], body, answers } = operation;
  const notes = [description, AUDIENCE_NOTES[audience]].filter((note) => note !== undefined && note !== "");
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(notes.length > 0 && { description: notes.join(" ") }),
    security: securityOf(audience),
    ...(parameters.length > 0 && { parameters: parameters.map(toParameter) }),
    ...(body !== undefined && { requestBody: toRequestBody(body) }),
    responses: {
      ...Object.fromEntries(answers.map((answer) => [answer.status, toResponse(answer)])),
      ...errorReferences(operation),
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

function toResponse({ description, schema, events, type, headers = [] }: Answer): object {
  const content = {
    ...(schema !== undefined && { "application/json": { schema } }),
    // OpenAPI 3.1 cannot say what the events of a stream are like.
    ...(events !== undefined && { "text/event-stream": { schema: text, "x-event-data": events } }),
    ...(type !== undefined && { [type]: { schema: text } }),
  };
  return { description, headers: headerReferences([...COMMON_HEADERS, ...headers]), content };
}
