// Which tool the demo model calls, and with what: one that the request insists on, or that the question names.

import { lastTextOf } from "./reply.ts";
import type { ChatMessage, ChatRequest, ChatTool } from "./requests.ts";
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
  if (choice === "none") return undefined;
  if (choice === "auto") return toolAskedFor(tools, request.messages);
  if (tools.length === 0) throw invalidField("tool_choice", "needs at least one entry in 'tools'");
  if (choice === "required") return tools.find((tool) => tool.type === "function") ?? tools[0];
  if (choice.type !== "allowed_tools") return findTool(tools, nameOf(choice));
  const names = new Set(choice.allowed_tools.tools.map(nameOf));
  if (choice.allowed_tools.mode === "auto") {
    const allowed = tools.filter((tool) => names.has(nameOf(tool)));
    return toolAskedFor(allowed, request.messages);
  }
  const [first] = names;
  if (first === undefined) throw invalidField("tool_choice", "allowed_tools must name at least one tool");
  return findTool(tools, first);
}

/** The first tool whose name the user's last words hold; none once a tool has answered, so that agent loops end. */
function toolAskedFor(tools: readonly ChatTool[], messages: readonly ChatMessage[]): ChatTool | undefined {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
  if (turn.some(({ role }) => role === "tool" || role === "function")) return undefined;
  const question = lastTextOf(turn.findLast(({ role }) => role === "user"));
  const words = new Set(question.match(/[\p{L}\p{N}_-]+/gu));
  return tools.find((tool) => words.has(nameOf(tool)));
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
