// Amazon Bedrock: models of all vendors by Converse; those of Anthropic by InvokeModel, whose body is that of the Messages
// API, so that more of a request survives; models of embeddings by InvokeModel, too. The table of kinds checks the type of
// the row, which this file cannot name without a circle. Sources: the service models in
// @aws-sdk/client-bedrock-runtime and @aws-sdk/client-bedrock 3.1164, @anthropic-ai/bedrock-sdk.

import type { BackendSettings } from "../../config/sections/registry.ts";
import { EMBEDDING_MODELS } from "../../protocols/converse/embeddings.ts";
import type { Dialect } from "../../protocols/protocol.ts";
import { AWS_CREDENTIAL } from "./aws-credential.ts";
import { AWS_SETTINGS } from "./settings.ts";

function usualAddress({ region = "" }: BackendSettings): string {
  return `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
}

function problemsOf({ profile, access_key_id: id, secret_access_key: secret, session_token: token }: BackendSettings) {
  const problems: { key: (typeof AWS_SETTINGS)[number]; message: string }[] = [];
  const tell = (key: (typeof AWS_SETTINGS)[number], message: string) => problems.push({ key, message });
  if (id !== undefined && secret === undefined) tell("secret_access_key", "is required beside access_key_id");
  if (secret !== undefined && id === undefined) tell("access_key_id", "is required beside secret_access_key");
  if (token !== undefined && id === undefined)
    tell("session_token", "belongs to an access key; give access_key_id, too");
  if (profile !== undefined && id !== undefined) tell("profile", "is not looked at beside access_key_id; remove one");
  return problems;
}

/** Ids of inference profiles and ARNs have colons and slashes, which are signed as they are sent. */
function resourceOf(model: string, { deployments }: BackendSettings): string {
  return encodeURIComponent(deployments?.[model] ?? model);
}

const VERSION = { anthropic_version: "bedrock-2023-05-31" };

/** The model and whether the answer streams stand in the path, the version and the betas in the body. */
function membersOf({ betas }: { betas?: string | undefined }) {
  return {
    model: undefined,
    stream: undefined,
    ...VERSION,
    ...(betas !== undefined && { anthropic_beta: betas.split(",").map((beta) => beta.trim()) }),
  };
}

/** Lists of models are the control plane's; where the address is another one, it has both. */
function controlPlane(rootUrl: string): string {
  return rootUrl.replace(/^https:\/\/bedrock-runtime\./, "https://bedrock.");
}

/** @param anthropic - of the row of the vendor's own API, whose format Claude speaks here */
export function bedrockRow({ chat, efforts }: Pick<Dialect, "chat" | "efforts">) {
  const service = {
    name: "bedrock",
    chat,
    efforts,
    settings: {
      ...Object.fromEntries(AWS_SETTINGS.map((key) => [key, "optional"])),
      region: "required",
      deployments: "optional",
    },
    problemsOf,
    urlOf: usualAddress,
    resourceOf,
    auth: { header: "authorization", scheme: "bearer" },
    credential: AWS_CREDENTIAL,
    answersInFrames: true,
    headers: {},
    modelList: {
      path: "/foundation-models?byInferenceType=ON_DEMAND",
      rootOf: controlPlane,
      also: {
        path: "/inference-profiles",
        pages: { query: "maxResults=1000", cursor: "nextToken", parameter: "nextToken" },
        rootOf: controlPlane,
      },
    },
    // No model has this name, so the service refuses it before any token is spent. A key may be allowed some models only.
    probe: {
      method: "POST",
      path: "/model/signalbox-health-check/converse",
      body: "{}",
      fallbackPaths: [],
      acceptStatus: [200, 400, 403, 404, 429],
      warmupStatus: [503],
    },
    ownedBy: "amazon",
    provider: "aws.bedrock",
    responseHeaders: ["x-amzn-requestid"],
  } as const;
  const converse = {
    ...service,
    paths: { converse: "/model/{model}/{converse|converse-stream}" },
    prefill: { converse: {} },
  };
  const claude = {
    ...service,
    paths: {
      messages: "/model/{model}/{invoke|invoke-with-response-stream}",
      "invoke-count-tokens": "/model/{model}/count-tokens",
    },
    membersOf,
    betasInBody: true,
    ownedBy: "anthropic",
    inlines: "all",
    prefill: { messages: {} },
  } as const;
  return {
    ...converse,
    families: [
      { models: /anthropic|claude/i, kind: claude },
      { models: EMBEDDING_MODELS, kind: { ...converse, paths: { "invoke-embeddings": "/model/{model}/invoke" } } },
    ],
  };
}
