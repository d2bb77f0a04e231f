// Section backends: the model servers behind the gateway.

import { z } from "zod";
import {
  BACKEND_KIND_NAMES,
  BACKEND_KIND_SPELLINGS,
  type BackendKindName,
  resolveBackendKind,
  UNKNOWN_KIND,
} from "../../names.ts";
import { isSelfContained } from "../values/google-credentials.ts";
import { isPem } from "../values/pem.ts";
import { headerName, headerValue, httpStatus, overridesOf, positiveDuration, text, urlPath, whole } from "./fields.ts";
import { metadataEntrySchema } from "./metadata-entry.ts";
import { retryFields } from "./retry.ts";
import { defineSection } from "./section.ts";

const kind = z
  .string()
  .refine((spelling) => resolveBackendKind(spelling) !== undefined, {
    message: `unknown kind; known are ${BACKEND_KIND_NAMES.join(", ")}`,
  })
  .transform((spelling) => resolveBackendKind(spelling) as BackendKindName)
  .meta({ enum: [...BACKEND_KIND_SPELLINGS] });

/** They choose whose vendor organisation is billed, and what of a vendor's API is used. */
const FORWARDABLE_HEADERS = ["OpenAI-Organization", "OpenAI-Project", "OpenAI-Beta"] as const;

const forwardableHeader = z
  .string()
  .transform((name) => name.toLowerCase())
  .refine((name) => FORWARDABLE_HEADERS.some((known) => known.toLowerCase() === name), {
    message: `expected one of ${FORWARDABLE_HEADERS.join(", ")}`,
  })
  .meta({ enum: FORWARDABLE_HEADERS.flatMap((name) => [name, name.toLowerCase()]) });

const healthCheck = z.strictObject({
  endpoint: urlPath().optional().describe("Path of the probe; default: by kind."),
  fallback_endpoints: z.array(urlPath()).optional().describe("Tried in order when the endpoint answers 404."),
  method: z.enum(["GET", "POST", "HEAD"]).optional(),
  body: z
    .union([z.string(), z.record(z.string(), z.unknown())])
    .optional()
    .describe("JSON body of a POST probe."),
  accept_status: z.array(httpStatus()).min(1).optional().describe("Status codes that count as healthy; default [200]."),
  warmup_status: z.array(httpStatus()).optional().describe("Status codes of a loading engine; default [503]."),
  timeout: positiveDuration().optional().describe("Default: health_checks.timeout."),
});

const tls = z.strictObject({
  ca: text()
    .optional()
    .describe(
      "Authorities that the backend's certificate is checked with instead of the system's: PEM text, or the path of a " +
        "file with it.",
    ),
  server_name: z
    .string()
    .max(253, "at most 253 characters")
    .regex(/^(?!-)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/, "expected a host name")
    .refine((name) => !/^[\d.]+$/.test(name), "expected a host name, not an address")
    .optional()
    .describe("Name that is asked for (SNI) and looked for in the certificate. Default: the host of url."),
});

const entraId = z.strictObject({
  tenant_id: text().optional().describe("Id or domain of the directory. Default: AZURE_TENANT_ID."),
  client_id: text()
    .optional()
    .describe("Id of the application or of the managed identity. Default: AZURE_CLIENT_ID; else the machine's own."),
  client_secret: text().optional().describe("Secret of the application; with it tenant_id and client_id are needed."),
  federated_token_file: text()
    .optional()
    .describe("File with the token of a federated workload. Default: AZURE_FEDERATED_TOKEN_FILE."),
  scope: text()
    .default("https://cognitiveservices.azure.com/.default")
    .describe("What the token is for; https://ai.azure.com/.default where the service wants that."),
});

export const backendSchema = z.strictObject({
  name: text()
    .max(256, "at most 256 characters")
    .regex(/^[A-Za-z0-9_-]+$/, "letters, digits, '-' and '_' only")
    .describe("Unique; letters, digits, '-' and '_'."),
  type: kind
    .prefault(UNKNOWN_KIND)
    .describe(`${BACKEND_KIND_NAMES.slice(0, -1).join(", ")} or ${BACKEND_KIND_NAMES.at(-1)}.`),
  url: z
    .string()
    .regex(
      /^(https?:\/\/[^\s?#]+|unix:\/\S+)$/,
      'expected a URL that starts with "http://", "https://" or "unix:/", without a query',
    )
    .optional()
    .describe("With or without /v1, or unix:/path/to.sock. Default: the usual address of the kind."),
  tls: tls.optional().describe("How a backend behind https:// proves who it is; its certificate is always checked."),
  weight: whole(0, 100).default(1).describe("Share of WeightedRoundRobin; 0 = only when no other is left."),
  models: z
    .array(z.string().min(1))
    .optional()
    .describe("Models this backend serves. Left out or empty: asked from the backend."),
  model_configs: z
    .array(metadataEntrySchema)
    .default([])
    .describe("Metadata of models at this backend, as in a metadata file; wins over every file."),
  api_key: headerValue()
    .min(1, "must not be empty")
    .optional()
    .describe("Sent to the backend in the header of its kind."),
  protocols: z
    .array(z.enum(["chat", "responses", "messages"]))
    .min(1, "name at least one format, or leave the key out")
    .optional()
    .describe("Formats this backend speaks, where it is more or less than its kind: chat, responses, messages."),
  enabled: z.boolean().default(true),
  headers: z
    .record(headerName(), headerValue())
    .default({})
    .describe("Further headers for every request to this backend."),
  forward_headers: z
    .array(forwardableHeader)
    .prefault([])
    .describe("openai and azure: headers of clients that it gets: OpenAI-Organization, OpenAI-Project, OpenAI-Beta."),
  health_check: healthCheck.prefault({}).describe("Overrides of the kind's probe."),
  retry_override: overridesOf(retryFields).optional().describe("Overrides of the section retry."),
  api_version: z
    .string()
    .min(1)
    .optional()
    .describe("azure: the api-version parameter; default 2024-10-21. v1: the API without versions."),
  deployments: z
    .record(z.string(), z.string().min(1))
    .optional()
    .describe(
      "azure: model name -> deployment name, where the two differ. bedrock: model name -> id or ARN of what is asked, such " +
        "as an inference profile; the name tells whose model it is.",
    ),
  batch_deployments: z
    .record(z.string(), z.string().min(1))
    .optional()
    .describe(
      "azure: model name -> deployment of the type Global-Batch or Data-Zone-Batch, which gets the lines of batches with batches.vendor.",
    ),
  entra_id: entraId
    .optional()
    .describe(
      "azure: access tokens of Microsoft Entra ID instead of an api_key. {}: those of the environment or of the machine's identity.",
    ),
  project: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.:-]*$/, "expected the id or the number of a project")
    .optional()
    .describe("vertex: id of the Google Cloud project that is asked and billed."),
  location: z
    .string()
    .regex(/^[a-z][a-z0-9-]*$/, 'expected "global" or a region, such as "europe-west1"')
    .optional()
    .describe("vertex: region that answers, or global (the default), us or eu."),
  region: z
    .string()
    .regex(/^[a-z]{2,}(-[a-z]+)+-\d+$/, 'expected a region of AWS, such as "us-east-1"')
    .optional()
    .describe("bedrock: region of AWS that is asked, and that requests are signed for."),
  profile: text()
    .optional()
    .describe(
      "bedrock: profile of ~/.aws whose credentials are used. Default: where every AWS program looks for them.",
    ),
  access_key_id: text().optional().describe("bedrock: id of an access key of AWS; with secret_access_key."),
  secret_access_key: text().optional().describe("bedrock: secret of the access key."),
  session_token: headerValue()
    .min(1, "must not be empty")
    .optional()
    .describe("bedrock: session token of a temporary access key."),
  credentials: text()
    .optional()
    .describe(
      "vertex: Google credentials as JSON, or the path of a file with them. Default: the application default credentials.",
    ),
});

export const backendsSection = defineSection({
  description: "The model servers behind the gateway.",
  schema: z.array(backendSchema).prefault([]),
  aliases: { "*.kind": "type" },
  secretPaths: [
    "*.api_key",
    "*.headers.*",
    "*.credentials",
    "*.entra_id.client_secret",
    "*.secret_access_key",
    "*.session_token",
  ],
  urlPaths: ["*.url"],
  sentTo: ["url", "type", "tls.ca", "tls.server_name"],
  machineCredentials: { of: ["project", "entra_id", "region"], unless: "entra_id.client_secret", goTo: "url" },
  filePaths: {
    "*.url": { use: "socket" },
    "*.entra_id.federated_token_file": { use: "file", endings: [".jwt", ".token"] },
    "*.credentials": { use: "file", endings: [".json"], isContent: isSelfContained },
    "*.tls.ca": { use: "file", endings: [".pem", ".crt", ".cer"], isContent: isPem },
  },
  entryNames: { "": ["name"], "*.model_configs": ["id"] },
});
