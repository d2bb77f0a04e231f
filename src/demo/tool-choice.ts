// Which tool the demo model calls, and with what: only one that the request insists on, so that agent loops end.

import type { ChatRequest, ChatTool } from "./requests.ts";
import { invalidField } from "./requests.ts";
import { schemaExample } from "./schema-example.ts";

export interface ToolCall {
  type: "function" | "custom";
  name: string;
  /** Arguments as JSON text, or the free text of a custom tool. */
  input: string;
}

/** undefined: the answer is text. */
export function chooseToolCall(request: ChatRequest): ToolCall | undefined {
  const tool = chooseTool(request);
  if (!tool) return undefined;
  if (tool.type === "custom") return { type: "custom", name: tool.custom.name, input: "example" };
  // The arguments are an object whatever the schema says.
  const schema = { ...tool.function.parameters, type: "object" };
  return { type: "function", name: tool.function.name, input: JSON.stringify(schemaExample(schema)) };
}

function chooseTool(request: ChatRequest): ChatTool | undefined {
  const tools = request.tools ?? [];
  const choice = request.tool_choice ?? "auto";
  if (choice === "auto" || choice === "none") return undefined;
  if (tools.length === 0) throw invalidField("tool_choice", "needs at least one entry in 'tools'");
  if (choice === "required") return tools.find((tool) => tool.type === "function") ?? tools[0];
  if (choice.type !== "allowed_tools") return findTool(tools, nameOf(choice));
  if (choice.allowed_tools.mode === "auto") return undefined;
  const [first] = choice.allowed_tools.tools;
  if (!first) throw invalidField("tool_choice", "allowed_tools must name at least one tool");
  return findTool(tools, nameOf(first));
}

function findTool(tools: readonly ChatTool[], name: string): ChatTool {
  const tool = tools.find((candidate) => nameOf(candidate) === name);
  if (!tool) throw invalidField("tool_choice", `"${name}" is not among the tools`);
  return tool;
}

type NamedTool = { type: "function"; function: { name: string } } | { type: "custom"; custom: { name: string } };

function nameOf(tool: NamedTool): string {
  return tool.type === "function" ? tool.function.name : tool.custom.name;
}
