// Reads what a Messages backend received.

import { type JsonObject, object, objects, text } from "../ask.ts";
import { emptyReceived, type Received, type SeenPart } from "./received.ts";

export function readMessages(body: JsonObject): Received {
  const seen = emptyReceived(body);
  seen.system = contentOf(body.system).map((part) => (part.type === "text" ? part.text : ""));
  for (const { role, content } of objects(body.messages)) {
    seen.turns.push({ role: text(role), parts: contentOf(content) });
  }
  for (const tool of objects(body.tools)) {
    if (text(tool.type).startsWith("web_search")) seen.hosted.push(text(tool.type));
    else
      seen.tools.push({
        name: text(tool.name),
        description: text(tool.description),
        schema: object(tool.input_schema),
      });
  }
  const choice = object(body.tool_choice);
  if (choice.type === "any") seen.choice = "required";
  else if (choice.type === "tool") seen.choice = `tool ${choice.name}`;
  else if (typeof choice.type === "string") seen.choice = choice.type;
  seen.oneCall = choice.disable_parallel_tool_use === true;
  if (typeof body.max_tokens === "number") seen.maxTokens = body.max_tokens;
  if (typeof body.temperature === "number") seen.temperature = body.temperature;
  if (typeof body.top_p === "number") seen.topP = body.top_p;
  seen.stop = (body.stop_sequences ?? []) as string[];
  const thinking = object(body.thinking);
  const { effort, format } = object(body.output_config);
  const words = [
    ...(typeof effort === "string" ? [`output_config.effort ${effort}`] : []),
    ...(typeof thinking.type === "string"
      ? [`thinking ${thinking.type}${thinking.budget_tokens === undefined ? "" : `, ${thinking.budget_tokens} tokens`}`]
      : []),
  ];
  if (words.length > 0) seen.effort = words.join(", ");
  seen.showsThoughts = thinking.type === "enabled" || thinking.type === "adaptive";
  if (object(format).type === "json_schema") seen.format = object(object(format).schema);
  return seen;
}

function contentOf(content: unknown): SeenPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return objects(content).map(partOf);
}

function partOf(block: JsonObject): SeenPart {
  const source = object(block.source);
  switch (block.type) {
    case "image":
      return { type: "image", source: text(source.data) || text(source.url) };
    case "document":
      return { type: "document", name: text(block.title) };
    case "tool_use":
      return {
        type: "call",
        id: text(block.id),
        name: text(block.name),
        arguments: JSON.stringify(object(block.input)),
      };
    case "tool_result": {
      const parts = contentOf(block.content);
      const words = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
      const images = parts.filter(({ type }) => type === "image").length;
      return { type: "result", id: text(block.tool_use_id), text: words, images, isError: block.is_error === true };
    }
    case "thinking":
      return { type: "thinking", text: text(block.thinking), proof: text(block.signature) };
    case "redacted_thinking":
      return { type: "thinking", text: "", proof: text(block.data) };
    default:
      return { type: "text", text: text(block.text) };
  }
}
