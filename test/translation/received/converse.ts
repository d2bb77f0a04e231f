// Reads what a Converse backend received.

import { type JsonObject, object, objects, text } from "../ask.ts";
import { emptyReceived, type Received, type SeenPart } from "./received.ts";

export function readConverse(body: JsonObject): Received {
  const seen = emptyReceived(body);
  seen.cacheHints = JSON.stringify(body).split('"cachePoint"').length - 1;
  seen.system = objects(body.system).flatMap((block) => (block.text === undefined ? [] : [text(block.text)]));
  for (const { role, content } of objects(body.messages)) {
    const read = objects(content).flatMap(partOf);
    const isResult = read.some(({ type }) => type === "result");
    seen.turns.push({ role: isResult ? "tool" : text(role), parts: read });
  }
  for (const { toolSpec } of objects(object(body.toolConfig).tools)) {
    if (toolSpec === undefined) continue;
    const { name, description, inputSchema } = object(toolSpec);
    seen.tools.push({ name: text(name), description: text(description), schema: object(object(inputSchema).json) });
  }
  const { any, auto, tool } = object(object(body.toolConfig).toolChoice);
  if (any !== undefined) seen.choice = "required";
  else if (auto !== undefined) seen.choice = "auto";
  else if (tool !== undefined) seen.choice = `tool ${text(object(tool).name)}`;
  const { maxTokens, temperature, topP, stopSequences } = object(body.inferenceConfig);
  if (typeof maxTokens === "number") seen.maxTokens = maxTokens;
  if (typeof temperature === "number") seen.temperature = temperature;
  if (typeof topP === "number") seen.topP = topP;
  seen.stop = (stopSequences ?? []) as string[];
  const { maxReasoningEffort } = object(object(body.additionalModelRequestFields).reasoningConfig);
  if (maxReasoningEffort !== undefined) seen.effort = `maxReasoningEffort ${text(maxReasoningEffort)}`;
  const { schema } = object(object(object(object(body.outputConfig).textFormat).structure).jsonSchema);
  if (schema !== undefined) seen.format = JSON.parse(text(schema)) as JsonObject;
  return seen;
}

function partOf(block: JsonObject): SeenPart[] {
  const { image, document, audio, toolUse, toolResult, reasoningContent, cachePoint } = block;
  if (cachePoint !== undefined) return [];
  if (image !== undefined) return [{ type: "image", source: text(object(object(image).source).bytes) }];
  if (document !== undefined) return [{ type: "document", name: text(object(document).name) }];
  if (audio !== undefined) return [{ type: "audio" }];
  if (toolUse !== undefined) {
    const { toolUseId, name, input } = object(toolUse);
    return [{ type: "call", id: text(toolUseId), name: text(name), arguments: JSON.stringify(input) }];
  }
  if (toolResult !== undefined) {
    const { toolUseId, content, status } = object(toolResult);
    const inner = objects(content);
    const said = inner.flatMap((part) => (part.text === undefined ? [] : [text(part.text)])).join("\n");
    const images = inner.filter((part) => part.image !== undefined).length;
    return [{ type: "result", id: text(toolUseId), text: said, images, isError: status === "error" }];
  }
  if (reasoningContent !== undefined) {
    const { reasoningText, redactedContent } = object(reasoningContent);
    const { text: thought, signature } = object(reasoningText);
    return [{ type: "thinking", text: text(thought), proof: text(signature ?? redactedContent) }];
  }
  return [{ type: "text", text: text(block.text) }];
}
