// Reads what a Responses backend received.

import { canonical, type JsonObject, object, objects, text } from "../ask.ts";
import { emptyReceived, mediaOf, type Received, type SeenPart } from "./received.ts";

export function readResponses(body: JsonObject): Received {
  const seen = emptyReceived(body);
  if (typeof body.instructions === "string") seen.system.push(body.instructions);
  const items = typeof body.input === "string" ? [{ role: "user", content: body.input }] : objects(body.input);
  for (const item of items) {
    const { role, parts } = readItem(item);
    const isSystem = role === "system" || role === "developer";
    if (isSystem && seen.turns.length === 0) {
      seen.system.push(...parts.map((part) => (part.type === "text" ? part.text : "")));
      continue;
    }
    const last = seen.turns.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else seen.turns.push({ role: isSystem ? "system" : role, parts });
  }
  for (const tool of objects(body.tools)) {
    if (tool.type !== "function" && tool.type !== "custom") seen.hosted.push(text(tool.type));
    else
      seen.tools.push({
        name: text(tool.name),
        description: text(tool.description),
        schema: object(tool.parameters),
      });
  }
  if (typeof body.tool_choice === "string") seen.choice = body.tool_choice;
  else if (body.tool_choice !== undefined) seen.choice = `tool ${object(body.tool_choice).name}`;
  seen.oneCall = body.parallel_tool_calls === false;
  if (typeof body.max_output_tokens === "number") seen.maxTokens = body.max_output_tokens;
  if (typeof body.temperature === "number") seen.temperature = body.temperature;
  if (typeof body.top_p === "number") seen.topP = body.top_p;
  const { effort, summary } = object(body.reasoning);
  if (typeof effort === "string") seen.effort = `reasoning.effort ${effort}`;
  seen.showsThoughts = typeof summary === "string";
  const format = object(object(body.text).format);
  if (format.type === "json_object") seen.format = "json";
  if (format.type === "json_schema") seen.format = object(format.schema);
  return seen;
}

function readItem(item: JsonObject): { role: string; parts: SeenPart[] } {
  switch (item.type) {
    case "function_call":
    case "custom_tool_call":
      return {
        role: "assistant",
        parts: [
          {
            type: "call",
            id: text(item.call_id),
            name: text(item.name),
            arguments: item.type === "function_call" ? canonical(text(item.arguments)) : text(item.input),
          },
        ],
      };
    case "function_call_output":
    case "custom_tool_call_output": {
      const output =
        typeof item.output === "string" ? [{ type: "input_text", text: item.output }] : objects(item.output);
      const words = output.map((part) => text((part as JsonObject).text)).join("");
      const images = output.filter(({ type }) => type === "input_image").length;
      return {
        role: "tool",
        parts: [{ type: "result", id: text(item.call_id), text: words, images, isError: /error/i.test(words) }],
      };
    }
    case "reasoning": {
      const words = objects(item.summary)
        .map((part) => text(part.text))
        .join("");
      return {
        role: "assistant",
        parts: [{ type: "thinking", text: words, proof: text(item.encrypted_content) }],
      };
    }
    default:
      return { role: text(item.role), parts: contentOf(item.content) };
  }
}

function contentOf(content: unknown): SeenPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return objects(content).map((part): SeenPart => {
    if (part.type === "input_image") return { type: "image", source: mediaOf(text(part.image_url)) };
    if (part.type === "input_file") return { type: "document", name: text(part.filename) };
    return { type: "text", text: text(part.text) };
  });
}
