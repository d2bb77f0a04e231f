// Free-form tools (OpenAI's type "custom") for backends that know functions only: the tool becomes a function with one
// string member, `input`, and its calls come back free-form.

import { parseObject } from "../lib/json.ts";
import type { AnswerTransform } from "./answer-transform.ts";
import type { ContentPart } from "./content.ts";
import type { GenerationRequest } from "./request.ts";
import type { CustomTool, FunctionTool, Tool } from "./tools.ts";

const PARAMETERS = {
  type: "object",
  properties: { input: { type: "string", description: "The whole input of the tool, as plain text." } },
  required: ["input"],
  additionalProperties: false,
} as const;

export function customToolNames(request: GenerationRequest): ReadonlySet<string> {
  return new Set(request.tools.filter((tool) => tool.kind === "custom").map(({ name }) => name));
}

/** The request with functions in the place of its free-form tools, earlier calls included. */
export function customToolsAsFunctions(request: GenerationRequest): GenerationRequest {
  const asFunction = (part: ContentPart): ContentPart => {
    if (part.type !== "tool-call" || part.custom !== true) return part;
    const { custom: _, ...call } = part;
    return { ...call, arguments: JSON.stringify({ input: part.arguments }) };
  };
  return {
    ...request,
    tools: request.tools.map((tool): Tool => (tool.kind === "custom" ? functionFor(tool) : tool)),
    messages: request.messages.map((message) => ({ ...message, parts: message.parts.map(asFunction) })),
  };
}

function functionFor({ name, description, format }: CustomTool): FunctionTool {
  const grammar = format?.type === "grammar" ? grammarHint(format) : undefined;
  const text = [description, grammar].filter((each) => each !== undefined).join("\n\n");
  return { kind: "function", name, ...(text === "" ? {} : { description: text }), parameters: { ...PARAMETERS } };
}

/** The backend cannot be held to a grammar, but its model can read it. */
function grammarHint(format: Record<string, unknown>): string | undefined {
  const { definition, syntax } = (format.grammar ?? format) as { definition?: unknown; syntax?: unknown };
  if (typeof definition !== "string") return undefined;
  const kind = typeof syntax === "string" ? ` (${syntax})` : "";
  return `The input must follow this grammar${kind}:\n${definition}`;
}

/** Text that the model wrote in place of an object with `input` is taken as it is. */
function inputOf(text: string): string {
  const input = parseObject(text)?.input;
  return typeof input === "string" ? input : text;
}

/** Turns calls of the named functions back into free-form calls. */
export function customCalls(names: ReadonlySet<string>): AnswerTransform {
  const isCustom = (part: { type: string; name?: string; serverSide?: boolean }) =>
    part.type === "tool-call" && part.serverSide !== true && part.name !== undefined && names.has(part.name);
  return () => {
    // The input is an escaped JSON string until the call is whole.
    const held = new Map<number, string>();
    return {
      push(event) {
        switch (event.type) {
          case "part-start":
            if (event.part.type !== "tool-call" || !isCustom(event.part)) return [event];
            held.set(event.index, "");
            return [{ ...event, part: { ...event.part, custom: true } }];
          case "delta": {
            const text = held.get(event.index);
            if (text === undefined) return [event];
            held.set(event.index, text + event.text);
            return [];
          }
          case "part-end": {
            const text = held.get(event.index);
            if (text === undefined) return [event];
            held.delete(event.index);
            const input = inputOf(text);
            return input === "" ? [event] : [{ type: "delta", index: event.index, text: input }, event];
          }
          default:
            return [event];
        }
      },
      end: () => [],
    };
  };
}
