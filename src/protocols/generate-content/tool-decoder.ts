// tools and toolConfig of a client -> neutral tools and the choice among them.

import type { FunctionTool, Tool, ToolChoice } from "../../generation/tools.ts";
import { WEB_SEARCH } from "../../generation/tools.ts";
import { compact, isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { optionalText, textOf, textsOf } from "../reading.ts";
import { camelCase, either, eitherObject, listOf, objectsIn } from "./members.ts";
import { decodeSchema } from "./schema-decoder.ts";

/** Both are a search of the web; the second is its name for models of the generation 1.5. */
const SEARCHES: ReadonlySet<string> = new Set(["googleSearch", "googleSearchRetrieval"]);

const ORIGIN = "generate-content";

interface DecodedTools {
  tools: Tool[];
  toolChoice?: ToolChoice;
}

export function decodeTools(body: JsonObject): DecodedTools {
  const calling = callingConfigOf(body);
  const mode = textOf(calling.mode).toUpperCase();
  const isStrict = mode === "VALIDATED";
  const tools = objectsIn(body.tools).flatMap((tool) => decodeTool(tool, isStrict));
  return { tools, ...compact({ toolChoice: decodeChoice(calling, mode) }) };
}

function callingConfigOf(body: JsonObject): JsonObject {
  const config = eitherObject(body, "toolConfig", "tool_config");
  return eitherObject(config, "functionCallingConfig", "function_calling_config");
}

/** An object of tools may hold several kinds, each by its name. */
function decodeTool(tool: JsonObject, isStrict: boolean): Tool[] {
  return Object.entries(tool).flatMap(([key, value]): Tool[] => {
    if (!isPresent(value)) return [];
    const name = camelCase(key);
    if (name === "functionDeclarations") {
      return objectsIn(value).map((declaration) => decodeFunction(declaration, isStrict));
    }
    const origin = { protocol: ORIGIN, value: tool };
    if (!SEARCHES.has(name)) return [{ kind: "hosted", name, origin }];
    const blockedDomains = isObject(value) ? textsOf(either(value, "excludeDomains", "exclude_domains")) : [];
    return [{ kind: "web-search", name: WEB_SEARCH, origin, ...(blockedDomains.length > 0 && { blockedDomains }) }];
  });
}

function decodeFunction(declaration: JsonObject, isStrict: boolean): FunctionTool {
  const jsonSchema = either(declaration, "parametersJsonSchema", "parameters_json_schema");
  const { parameters } = declaration;
  return {
    kind: "function",
    name: textOf(declaration.name),
    ...compact({
      description: optionalText(declaration.description),
      parameters: isObject(jsonSchema) ? jsonSchema : isObject(parameters) ? decodeSchema(parameters) : undefined,
      strict: isStrict || undefined,
    }),
  };
}

function decodeChoice(calling: JsonObject, mode: string): ToolChoice | undefined {
  const names = textsOf(listOf(either(calling, "allowedFunctionNames", "allowed_function_names")));
  const [name] = names;
  switch (mode) {
    case "NONE":
      return { type: "none" };
    case "ANY":
      if (name === undefined) return { type: "required" };
      return names.length === 1 ? { type: "tool", name } : { type: "allowed", mode: "required", names };
    case "VALIDATED":
      return name === undefined ? { type: "auto" } : { type: "allowed", mode: "auto", names };
    case "AUTO":
      return { type: "auto" };
    default:
      return undefined;
  }
}

/** Whether a request offers a search of the web; a quick look. */
export function offersSearch({ tools }: JsonObject): boolean {
  return listOf(tools).some(
    (tool) => isObject(tool) && Object.keys(tool).some((key) => SEARCHES.has(camelCase(key)) && isPresent(tool[key])),
  );
}

const OWN_MEMBERS = ["behavior", "response", "responseJsonSchema", "response_json_schema"];

/** What of the declarations of tools only Gemini has a word for. */
export function ownMembersOfTools(body: JsonObject): string[] {
  const declarations = objectsIn(body.tools).flatMap((tool) =>
    objectsIn(either(tool, "functionDeclarations", "function_declarations")),
  );
  return OWN_MEMBERS.filter((name) => declarations.some((declaration) => isPresent(declaration[name])));
}
