// Reads what a chat backend received.

import { canonical, type JsonObject, object, objects, text } from "../ask.ts";
import { emptyReceived, mediaOf, type Received, type SeenPart } from "./received.ts";

export function readChat(body: JsonObject): Received {
  const seen = emptyReceived(body);
  for (const message of objects(body.messages)) {
    const parts = contentOf(message.content);
    if (message.role === "system" || message.role === "developer") {
      const words = parts.map((part) => (part.type === "text" ? part.text : ""));
      if (seen.turns.length === 0) seen.system.push(...words);
      else seen.turns.push({ role: "system", parts });
      continue;
    }
    if (message.role === "tool") {
      const words = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
      const result: SeenPart = {
        type: "result",
        id: text(message.tool_call_id),
        text: words,
        images: 0,
        isError: /error/i.test(words),
      };
      const last = seen.turns.at(-1);
      if (last?.role === "tool") last.parts.push(result);
      else seen.turns.push({ role: "tool", parts: [result] });
      continue;
    }
    const thoughts = text(message.reasoning_content) || text(message.reasoning);
    if (thoughts !== "") parts.unshift({ type: "thinking", text: thoughts, proof: "" });
    parts.push(...objects(message.tool_calls).map(callOf));
    seen.turns.push({ role: text(message.role), parts });
  }
  seen.tools = objects(body.tools).map((tool) => {
    const { name, description, parameters } = object(tool.function ?? tool.custom);
    return { name: text(name), description: text(description), schema: object(parameters) };
  });
  const choice = body.tool_choice;
  if (typeof choice === "string") seen.choice = choice;
  else if (choice !== undefined) seen.choice = `tool ${object(object(choice).function).name}`;
  seen.oneCall = body.parallel_tool_calls === false;
  const limit = body.max_completion_tokens ?? body.max_tokens;
  if (typeof limit === "number") seen.maxTokens = limit;
  if (typeof body.temperature === "number") seen.temperature = body.temperature;
  if (typeof body.top_p === "number") seen.topP = body.top_p;
  seen.stop = typeof body.stop === "string" ? [body.stop] : ((body.stop ?? []) as string[]);
  if (typeof body.reasoning_effort === "string") seen.effort = `reasoning_effort ${body.reasoning_effort}`;
  const format = object(body.response_format);
  if (format.type === "json_object") seen.format = "json";
  if (format.type === "json_schema") seen.format = object(object(format.json_schema).schema);
  return seen;
}

function callOf(call: JsonObject): SeenPart {
  const { name, arguments: args } = object(call.function);
  const proof = text(object(object(call.extra_content).google).thought_signature);
  return {
    type: "call",
    id: text(call.id),
    name: text(name),
    arguments: canonical(text(args)),
    ...(proof !== "" && { proof }),
  };
}

function contentOf(content: unknown): SeenPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return objects(content).map((part): SeenPart => {
    if (part.type === "image_url") return { type: "image", source: mediaOf(text(object(part.image_url).url)) };
    if (part.type === "file") return { type: "document", name: text(object(part.file).filename) };
    if (part.type === "input_audio") return { type: "audio" };
    return { type: "text", text: text(part.text) };
  });
}
