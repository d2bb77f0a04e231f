// The endpoint that serves the OpenAPI document.

import { type DescribedEndpoint, jsonAnswer } from "./operation.ts";

/** `endpoints`: all that are served, this one included; asked for with the first request, which the document is made for. */
export function openApiRoute(endpoints: () => Promise<readonly DescribedEndpoint[]>): DescribedEndpoint {
  let body: string | undefined;
  return {
    method: "GET",
    path: "/openapi.json",
    access: "open",
    id: "getOpenApiDocument",
    tag: "Health",
    summary: "This document",
    answers: [jsonAnswer({ type: "object", additionalProperties: true }, "The document.")],
    errors: [],
    async handle({ headers }) {
      body ??= await written(endpoints);
      return new Response(body, { headers: { ...headers, "Content-Type": "application/json" } });
    },
  };
}

async function written(endpoints: () => Promise<readonly DescribedEndpoint[]>): Promise<string> {
  const { openApiDocument } = await import("./document.ts");
  return JSON.stringify(openApiDocument(await endpoints()));
}
