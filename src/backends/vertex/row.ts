// Gemini and Claude on Google Cloud, each in its own format. Sources: @google/genai and @anthropic-ai/vertex-sdk.

import { googleCredential } from "../credentials/google.ts";
import { type BackendKind, formatOfRow, probe } from "../kind.ts";
import { bareName, resourceOf, usualAddress, versionMember } from "./addresses.ts";

/** Takes the rows of the vendors' own APIs, whose formats are spoken here. */
export function vertexRow(ofGemini: BackendKind, ofAnthropic: BackendKind): BackendKind {
  const list = "/v1beta1/publishers/google/models";
  const service = {
    name: "vertex",
    settings: { project: "required", location: "optional", credentials: "optional" },
    urlOf: usualAddress,
    credential: googleCredential,
    auth: ofGemini.auth,
    modelList: { path: list, pages: { query: "pageSize=1000", cursor: "nextPageToken", parameter: "pageToken" } },
    // An account may be allowed to ask models without being allowed to list them.
    probe: probe(`${list}?pageSize=1`, [], { acceptStatus: [200, 403] }),
    provider: "gcp.vertex_ai",
    isCloud: true,
  } as const;
  const gemini: BackendKind = {
    ...formatOfRow(ofGemini),
    ...service,
    resourceOf: (model, settings) => resourceOf(model, settings, "google"),
    paths: {
      "generate-content": "/v1beta1/{model}:{generateContent|streamGenerateContent?alt=sse}",
      "image-content": "/v1beta1/{model}:generateContent",
      "embed-content": "/v1beta1/{model}:predict",
    },
    embeds: "predict",
  };
  const claude: BackendKind = {
    ...formatOfRow(ofAnthropic),
    ...service,
    headers: {},
    paths: { messages: "/v1/{model}:{rawPredict|streamRawPredict}", "count-tokens": "/v1/{model}:rawPredict" },
    // The counter is a model of its own; the path names the model, and the body of the counter the one that is counted for.
    resourceOf: (model, settings, operation) =>
      resourceOf(operation === "count-tokens" ? operation : model, settings, "anthropic"),
    membersOf: ({ operation, model, version }) => ({
      model: operation === "count-tokens" ? bareName(model) : undefined,
      ...versionMember(version),
    }),
    versionInBody: true,
    inlines: "translated",
  };
  const embedder: BackendKind = {
    ...gemini,
    paths: { "embed-content": "/v1beta1/{model}:embedContent" },
    embeds: "content",
  };
  const families = [
    { models: /^(?:(?:publishers\/)?anthropic\/|claude)/, kind: claude },
    { models: /gemini-embedding-(?!001$)/, kind: embedder }, // as tIsVertexEmbedContentModel of @google/genai has it
  ];
  return { ...gemini, families };
}
