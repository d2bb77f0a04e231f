// Hosted vendors of the chat format, as strict as they are: their paths, the members that they refuse, their errors.
// Sources: groq-sdk 1.6.0, @mistralai/mistralai 2.7.0 and mistral_common 1.13.1, api-docs.deepseek.com/guides/thinking_mode,
// docs.x.ai/docs/guides/reasoning, inference-docs.cerebras.ai/resources/openai, docs.cohere.com/docs/compatibility-api.

import { ChatAnswer, Counter, dataFrame, modelList } from "./chat.ts";
import { openAiFailure, openAiRefusal } from "./openai-errors.ts";
import type { JsonObject, Script } from "./script.ts";
import {
  notFound,
  type Reply,
  requireBearer,
  requireJson,
  type StrictBackend,
  startStrictServer,
  type Vendor,
} from "./server.ts";
import { isObject, Refused, refuse } from "./shape.ts";

interface StrictVendor {
  /** Path of the base URL that the documentation gives. */
  base: string;
  /** Path of the list of models; undefined: there is none. */
  list?: string;
  model: string;
  /** Status of an answer to a member that is not known. */
  status: number;
  /** Members of a request; undefined: unknown ones are ignored. */
  members?: readonly string[];
  /** Members that are refused. */
  refused?: readonly string[];
  /** Members of a message by its role; undefined: unknown ones are ignored. */
  messageMembers?: Readonly<Record<string, readonly string[]>>;
  check?(body: JsonObject): void;
  reasoningField?: "reasoning" | "reasoning_content";
  /** Members beside the choices that name what it has searched. */
  sources?: JsonObject;
  /** An id of a call, as the vendor makes it. */
  callId?: string;
}

const COMMON = ["messages", "model", "n", "response_format", "stop", "stream", "temperature", "tools", "tool_choice"];
const MORE = [
  "frequency_penalty",
  "presence_penalty",
  "top_p",
  "parallel_tool_calls",
  "reasoning_effort",
  "service_tier",
];

export const STRICT_VENDORS = {
  groq: {
    base: "/openai/v1",
    list: "/openai/v1/models",
    model: "openai/gpt-oss-120b",
    status: 400,
    members: [...COMMON, ...MORE, "max_completion_tokens", "max_tokens", "seed", "stream_options", "user", "metadata"],
    messageMembers: {
      system: ["role", "content"],
      user: ["role", "content"],
      assistant: ["role", "content", "reasoning", "tool_calls"],
      tool: ["role", "content", "tool_call_id"],
    },
    check: ({ reasoning_effort }) => {
      if (![undefined, "low", "medium", "high"].includes(reasoning_effort as string))
        refuse("reasoning_effort", "low, medium or high");
    },
    reasoningField: "reasoning",
  },
  mistral: {
    base: "/v1",
    list: "/v1/models",
    model: "mistral-large-latest",
    status: 422,
    members: [
      ...COMMON,
      ...MORE,
      "max_tokens",
      "random_seed",
      "metadata",
      "prediction",
      "prompt_cache_key",
      "safe_prompt",
    ],
    messageMembers: {
      system: ["role", "content"],
      user: ["role", "content"],
      assistant: ["role", "content", "tool_calls", "prefix"],
      tool: ["role", "content", "tool_call_id", "name"],
    },
    check: ({ messages }) => {
      for (const { tool_call_id, tool_calls = [] } of messages as {
        tool_call_id?: string;
        tool_calls?: { id: string }[];
      }[]) {
        for (const id of [tool_call_id, ...tool_calls.map((call) => call.id)]) {
          if (id !== undefined && !/^[a-zA-Z0-9]{9}$/.test(id)) {
            refuse("messages", `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`);
          }
        }
      }
    },
    callId: "D681PevKs",
  },
  deepseek: {
    base: "/v1",
    list: "/v1/models",
    model: "deepseek-v4-pro",
    status: 400,
    check: ({ messages, response_format: format }) => {
      if (isObject(format) && format.type === "json_schema")
        refuse("response_format", "This response_format type is unavailable now");
      for (const { role, content, reasoning_content } of messages as JsonObject[]) {
        if (role === "developer") refuse("messages", "unknown variant `developer`");
        if (Array.isArray(content)) refuse("messages", "invalid type: sequence, expected a string");
        if (role === "assistant" && !reasoning_content) {
          refuse("messages", "The `reasoning_content` in the thinking mode must be passed back to the API.");
        }
      }
    },
    reasoningField: "reasoning_content",
  },
  xai: {
    base: "/v1",
    list: "/v1/models",
    model: "grok-4.3",
    status: 400,
    refused: ["presence_penalty", "frequency_penalty", "stop"],
  },
  cerebras: {
    base: "/v1",
    list: "/v1/models",
    model: "gpt-oss-120b",
    status: 400,
    refused: ["frequency_penalty", "presence_penalty", "logit_bias", "parallel_tool_calls", "service_tier"],
    messageMembers: {
      system: ["role", "content"],
      user: ["role", "content"],
      assistant: ["role", "content", "reasoning", "tool_calls"],
      tool: ["role", "content", "tool_call_id"],
    },
    reasoningField: "reasoning",
  },
  cohere: {
    base: "/compatibility/v1",
    list: "/v1/models",
    model: "command-a-03-2025",
    status: 422,
    refused: ["logit_bias", "parallel_tool_calls", "max_completion_tokens"],
  },
  zai: {
    base: "/api/paas/v4",
    list: "/api/paas/v4/models",
    model: "glm-5.3",
    status: 400,
    refused: ["max_completion_tokens", "frequency_penalty", "presence_penalty", "stream_options"],
    check: ({ tool_choice, messages }) => {
      if (![undefined, "auto"].includes(tool_choice as string)) refuse("tool_choice", "auto");
      if ((messages as JsonObject[]).some(({ name }) => name !== undefined)) refuse("messages", "name is unknown");
    },
    reasoningField: "reasoning_content",
  },
  perplexity: {
    base: "",
    model: "sonar-pro",
    status: 400,
    refused: ["stream_options", "stop"],
    sources: {
      citations: ["https://a.example/tree"],
      search_results: [{ title: "Trees", url: "https://a.example/tree", date: "2026-01-01" }],
    },
  },
  deepinfra: {
    base: "/v1/openai",
    list: "/v1/openai/models",
    model: "meta-llama/Llama-3.3-70B-Instruct",
    status: 400,
    check: ({ tool_choice }) => {
      if (![undefined, "auto", "none"].includes(tool_choice as string)) refuse("tool_choice", "auto or none");
    },
  },
  github: {
    base: "/inference",
    list: "/catalog/models",
    model: "openai/gpt-4.1",
    status: 400,
    refused: ["reasoning"],
  },
} as const satisfies Record<string, StrictVendor>;

export type StrictVendorName = keyof typeof STRICT_VENDORS;

export function startStrictVendor(name: StrictVendorName, script: Script): Promise<StrictBackend> {
  const facts: StrictVendor = STRICT_VENDORS[name];
  const ids = new Counter();
  const vendor: Vendor = {
    read(request) {
      requireBearer(request, "invalid_api_key");
      if (request.path !== facts.list) return undefined;
      // The catalogue of GitHub is a bare list, that of Cohere has names.
      if (name === "github") return [{ id: facts.model, name: "A model", publisher: "OpenAI" }];
      return name === "cohere" ? { models: [{ name: facts.model }] } : modelList([facts.model], name);
    },
    accept(request) {
      if (request.path !== `${facts.base}/chat/completions`) throw notFound(request);
      requireBearer(request, "invalid_api_key");
      requireJson(request);
      const { body } = request;
      checkMembers(body, facts);
      if (!Array.isArray(body.messages)) refuse("messages", "expected a list");
      for (const [index, message] of body.messages.entries()) checkMessage(message, `messages.${index}`, facts);
      facts.check?.(body);
      return (answer) => {
        const { callId } = facts;
        const parts = answer.parts.map((part) =>
          part.type === "call" && callId !== undefined ? { ...part, id: part.id ?? callId } : part,
        );
        const reply = new ChatAnswer({ ...answer, parts }, body, ids, facts.reasoningField).render();
        return facts.sources === undefined ? reply : withSources(reply, facts.sources);
      };
    },
    refusal: openAiRefusal,
    failure: openAiFailure,
    failureFrame: (error) => `data: ${JSON.stringify(openAiFailure(error))}\n\n`,
  };
  return startStrictServer(vendor, script);
}

/** In the whole answer, or in the last chunk with a choice. */
function withSources(reply: Reply, sources: JsonObject): Reply {
  if ("json" in reply) return { ...reply, json: { ...(reply.json as JsonObject), ...sources } };
  const texts = reply.frames.map(String);
  const last = texts.findLastIndex((frame) => frame.includes('"finish_reason":"'));
  const frames = texts.map((frame, index) =>
    index === last ? dataFrame({ ...JSON.parse(frame.slice("data: ".length)), ...sources }) : frame,
  );
  return { ...reply, frames };
}

function checkMembers(body: JsonObject, { members, refused = [], status }: StrictVendor): void {
  for (const member of Object.keys(body)) {
    const isKnown = members?.includes(member) !== false;
    if (!isKnown || refused.includes(member)) throw new Refused("unknown", member, "extra_forbidden", status);
  }
}

function checkMessage(message: unknown, field: string, { messageMembers, status }: StrictVendor): void {
  if (!isObject(message)) refuse(field, "expected an object");
  if (messageMembers === undefined) return;
  const members = messageMembers[String(message.role)];
  if (members === undefined) throw new Refused("invalid", `${field}.role`, `unknown role ${message.role}`, status);
  for (const member of Object.keys(message)) {
    if (!members.includes(member)) {
      throw new Refused("unknown", `${field}.${member}`, `property '${member}' is unsupported`, status);
    }
  }
}
