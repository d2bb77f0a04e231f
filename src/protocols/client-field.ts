// Refusals of encoders name a field of the neutral request: "messages", "stop", "tools[2].name". Here it becomes the
// field of the client's own request that says it.

import { GatewayError } from "../errors/gateway-error.ts";
import type { ProtocolName } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { compact, isObject } from "../lib/json.ts";
import { pathTo } from "../lib/json-path.ts";

/** By the neutral field: what it is called where it has another name. The first one that the client wrote counts. */
const NAMES: Readonly<Record<string, Partial<Record<ProtocolName, readonly string[]>>>> = {
  messages: {
    responses: ["input"],
    completions: ["prompt"],
    "generate-content": ["contents"],
    "ollama-api": ["messages", "prompt"],
  },
  n: { "generate-content": ["generationConfig.candidateCount"] },
  stop: {
    messages: ["stop_sequences"],
    "generate-content": ["generationConfig.stopSequences"],
    "ollama-api": ["options.stop"],
  },
  response_format: { "generate-content": ["generationConfig.responseSchema"] },
  tools: {
    chat: ["tools", "functions", "web_search_options"],
    messages: ["tools", "mcp_servers"],
    responses: ["tools", "input"],
  },
  tool_choice: { chat: ["tool_choice", "function_call"], "generate-content": ["toolConfig", "tool_config"] },
};

/** The refusal in the client's words. */
export function inClientsWords(refusal: GatewayError, request: GenerationRequest): GatewayError {
  const { param, message, details, headers } = refusal;
  if (param === undefined) return refusal;
  const field = clientField(param, request);
  if (field === param) return refusal;
  const words = message.startsWith(`${param}:`) ? `${field}${message.slice(param.length)}` : message;
  return new GatewayError(refusal, words, {
    param: field,
    cause: refusal,
    ...compact({ details, headers }),
  });
}

function clientField(param: string, request: GenerationRequest): string {
  const [, index, member = ""] = /^tools\[(\d+)\](\.\w+)?$/.exec(param) ?? [];
  const field = index === undefined ? undefined : toolField(request, Number(index), member);
  return field ?? fieldNamed(index === undefined ? param : "tools", request);
}

function fieldNamed(name: string, { origin: { protocol, body } }: GenerationRequest): string {
  const names = Object.hasOwn(NAMES, name) ? NAMES[name]?.[protocol] : undefined;
  return names?.find((candidate) => body[candidate] !== undefined && body[candidate] !== null) ?? names?.[0] ?? name;
}

/** Where the client declares a tool: its formats nest the declaration, or collect several of them. */
function toolField({ tools, origin: { body } }: GenerationRequest, index: number, member: string): string | undefined {
  const tool = tools[index];
  if (tool === undefined) return undefined;
  if ("origin" in tool) {
    const { value } = tool.origin;
    return pathTo(body, (candidate) => candidate === value) ?? (tool.name in body ? tool.name : undefined);
  }
  const declaring = { tools: body.tools, functions: body.functions, input: body.input };
  const path = pathTo(declaring, (candidate) => isObject(candidate) && candidate.name === tool.name);
  return path === undefined ? undefined : `${path}${member}`;
}
