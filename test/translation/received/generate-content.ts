// Reads what a generateContent backend received.

import { type JsonObject, object, objects, text } from "../ask.ts";
import { emptyReceived, type Received, type SeenPart } from "./received.ts";

export function readGenerateContent(body: JsonObject): Received {
  const seen = emptyReceived(body);
  seen.system = objects(object(body.systemInstruction).parts).map((part) => text(part.text));
  for (const { role, parts } of objects(body.contents)) {
    const read = objects(parts).map(partOf);
    const isResult = read.some(({ type }) => type === "result");
    seen.turns.push({ role: role === "model" ? "assistant" : isResult ? "tool" : "user", parts: read });
  }
  for (const tool of objects(body.tools)) {
    for (const { name, description, parameters, parametersJsonSchema } of objects(tool.functionDeclarations)) {
      const schema = object(parametersJsonSchema ?? parameters);
      seen.tools.push({ name: text(name), description: text(description), schema });
    }
    seen.hosted.push(...Object.keys(tool).filter((key) => key !== "functionDeclarations"));
  }
  const { mode, allowedFunctionNames } = object(object(body.toolConfig).functionCallingConfig);
  const names = Array.isArray(allowedFunctionNames) ? allowedFunctionNames : [];
  if (mode === "ANY") seen.choice = names.length === 1 ? `tool ${names[0]}` : "required";
  else if (typeof mode === "string") seen.choice = mode === "VALIDATED" ? "auto" : mode.toLowerCase();
  const config = object(body.generationConfig);
  if (typeof config.maxOutputTokens === "number") seen.maxTokens = config.maxOutputTokens;
  if (typeof config.temperature === "number") seen.temperature = config.temperature;
  if (typeof config.topP === "number") seen.topP = config.topP;
  seen.stop = (config.stopSequences ?? []) as string[];
  const { thinkingBudget, thinkingLevel, includeThoughts } = object(config.thinkingConfig);
  if (thinkingLevel !== undefined) seen.effort = `thinkingLevel ${thinkingLevel}`;
  if (thinkingBudget !== undefined) seen.effort = `thinkingBudget ${thinkingBudget}`;
  seen.showsThoughts = includeThoughts === true;
  const schema = config.responseJsonSchema ?? config.responseSchema;
  if (schema !== undefined) seen.format = object(schema);
  else if (config.responseMimeType === "application/json") seen.format = "json";
  return seen;
}

function partOf(part: JsonObject): SeenPart {
  const proof = text(part.thoughtSignature);
  if (part.inlineData !== undefined) {
    const { mimeType, data, displayName } = object(part.inlineData);
    if (text(mimeType).startsWith("image/")) return { type: "image", source: text(data) };
    if (text(mimeType).startsWith("audio/")) return { type: "audio" };
    return { type: "document", name: text(displayName) };
  }
  if (part.fileData !== undefined) return { type: "image", source: text(object(part.fileData).fileUri) };
  if (part.functionCall !== undefined) {
    const { id, name, args } = object(part.functionCall);
    return {
      type: "call",
      id: text(id),
      name: text(name),
      arguments: JSON.stringify(object(args)),
      ...(proof !== "" && { proof }),
    };
  }
  if (part.functionResponse !== undefined) {
    const { id, response, parts } = object(part.functionResponse);
    const isError = object(response).error !== undefined;
    const images = objects(parts).length;
    return { type: "result", id: text(id), text: wordsOf(object(response)), images, isError };
  }
  if (part.thought === true) return { type: "thinking", text: text(part.text), proof };
  return { type: "text", text: text(part.text) };
}

function wordsOf(response: JsonObject): string {
  const { output, error } = response;
  const said = error ?? output;
  return typeof said === "string" ? said : JSON.stringify(response);
}
