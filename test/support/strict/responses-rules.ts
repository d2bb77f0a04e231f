// What api.openai.com accepts at /v1/responses (wire/openai-responses.md).

import { checkStrictSchema, isReasoningModel } from "./chat-rules.ts";
import type { Ledger } from "./ledger.ts";
import type { JsonObject } from "./script.ts";
import {
  anyObject,
  anything,
  boolean,
  type Check,
  checkSignature,
  dataUrl,
  httpUrl,
  integer,
  isObject,
  list,
  number,
  oneOf,
  Refused,
  refuse,
  shape,
  string,
  stringOr,
  tagged,
} from "./shape.ts";

const NAME = string({ pattern: /^[a-zA-Z0-9_-]{1,64}$/ });
const id = (prefix: string) => string({ pattern: new RegExp(`^${prefix}`), max: 64 });
const CALL_ID = string({ min: 1, max: 64 });
const STATUS = { "status??": oneOf("in_progress", "completed", "incomplete") };

const inputImage: Check = (value, field) => {
  const url = dataUrl(/^image\/(png|jpeg|gif|webp)$/, true);
  shape({
    type: anything,
    "image_url??": url,
    "file_id??": string({ min: 1 }),
    "detail?": oneOf("auto", "low", "high", "original"),
  })(value, field);
  const { image_url, file_id } = value as { image_url?: string; file_id?: string };
  if (!image_url === !file_id) refuse(field, "exactly one of image_url and file_id");
  const [, mediaType = "", data = ""] = /^data:([^;]+);base64,(.*)$/s.exec(image_url ?? "") ?? [];
  if (data !== "") checkSignature(mediaType, data, `${field}.image_url`);
};

const inputFile: Check = (value, field) => {
  const members = {
    "file_id??": string({ min: 1 }),
    "file_data?": dataUrl(/^(application\/pdf|text\/plain)$/),
    "filename?": string({ min: 1 }),
    "file_url?": httpUrl,
  };
  shape({ type: anything, ...members })(value, field);
  const { file_id, file_data, file_url, filename } = value as JsonObject;
  const sources = [file_id, file_data, file_url].filter((source) => source !== undefined && source !== null);
  if (sources.length !== 1) refuse(field, "exactly one of file_id, file_data and file_url");
  if (file_data !== undefined && filename === undefined) throw new Refused("missing", `${field}.filename`, "required");
};

const INPUT_PARTS = {
  input_text: shape({ type: anything, text: string() }),
  input_image: inputImage,
  input_file: inputFile,
};
const OUTPUT_PARTS = {
  output_text: shape({
    type: anything,
    text: string(),
    "annotations?": list(anyObject),
    "logprobs??": list(anyObject),
  }),
  refusal: shape({ type: anything, refusal: string() }),
};

const inputContent = stringOr(string(), list(tagged("type", INPUT_PARTS), 1));
const inputMessage = shape({ "type?": anything, role: anything, content: inputContent, ...STATUS, "id?": id("msg_") });

const MESSAGE = tagged("role", {
  user: inputMessage,
  system: inputMessage,
  developer: inputMessage,
  assistant: shape({
    "type?": anything,
    role: anything,
    content: stringOr(string(), list(tagged("type", OUTPUT_PARTS), 1)),
    "id?": id("msg_"),
    "phase??": oneOf("commentary", "final_answer"),
    ...STATUS,
  }),
});

const output = stringOr(string(), list(tagged("type", INPUT_PARTS), 1));

const ITEMS = tagged("type", {
  message: MESSAGE,
  function_call: shape({
    type: anything,
    call_id: CALL_ID,
    name: NAME,
    arguments: string(),
    "id?": id("fc_"),
    "namespace?": string(),
    ...STATUS,
  }),
  function_call_output: shape({ type: anything, call_id: CALL_ID, output, "id??": id("fc"), ...STATUS }),
  custom_tool_call: shape({
    type: anything,
    call_id: CALL_ID,
    name: NAME,
    input: string(),
    "id?": id("ctc_"),
    "namespace?": string(),
    ...STATUS,
  }),
  custom_tool_call_output: shape({ type: anything, call_id: CALL_ID, output, "id??": string(), ...STATUS }),
  reasoning: shape({
    type: anything,
    id: id("rs_"),
    summary: list(shape({ type: oneOf("summary_text"), text: string() })),
    "content??": list(shape({ type: oneOf("reasoning_text"), text: string() })),
    "encrypted_content??": string({ min: 1 }),
    ...STATUS,
  }),
  item_reference: shape({ type: anything, id: string({ min: 1 }) }),
  web_search_call: shape({ type: anything, id: id("ws_"), status: string(), "action?": anyObject }),
});

const item: Check = (value, field) => {
  const isPlain = isObject(value) && value.type === undefined;
  (isPlain ? MESSAGE : ITEMS)(value, field);
};

const OWN_TOOLS = {
  function: shape({
    type: anything,
    name: NAME,
    "description??": string(),
    "parameters??": anyObject,
    "strict??": boolean,
    "defer_loading?": boolean,
  }),
  custom: shape({
    type: anything,
    name: NAME,
    "description?": string(),
    "format?": anyObject,
    "defer_loading?": boolean,
  }),
};

const TOOLS = tagged("type", {
  ...OWN_TOOLS,
  namespace: shape({ type: anything, name: NAME, description: string(), tools: list(tagged("type", OWN_TOOLS), 1) }),
  tool_search: anyObject,
  web_search: anyObject,
  web_search_preview: anyObject,
  file_search: anyObject,
  code_interpreter: anyObject,
  image_generation: anyObject,
  mcp: anyObject,
});

const TOOL_CHOICE = stringOr(
  oneOf("none", "auto", "required"),
  tagged("type", {
    function: shape({ type: anything, name: NAME }),
    custom: shape({ type: anything, name: NAME }),
    allowed_tools: shape({ type: anything, mode: oneOf("auto", "required"), tools: list(anyObject, 1) }),
    web_search: anyObject,
    web_search_preview: anyObject,
    file_search: anyObject,
    code_interpreter: anyObject,
    image_generation: anyObject,
    mcp: anyObject,
  }),
);

const FORMAT = tagged("type", {
  text: shape({ type: anything }),
  json_object: shape({ type: anything }),
  json_schema: shape({ type: anything, name: NAME, schema: anyObject, "description?": string(), "strict??": boolean }),
});

const INCLUDES = [
  "file_search_call.results",
  "web_search_call.results",
  "web_search_call.action.sources",
  "message.input_image.image_url",
  "computer_call_output.output.image_url",
  "code_interpreter_call.outputs",
  "reasoning.encrypted_content",
  "message.output_text.logprobs",
];

const BODY = shape({
  model: string({ min: 1 }),
  input: stringOr(string({ min: 1 }), list(item, 1)),
  "instructions??": string(),
  "previous_response_id??": id("resp_"),
  "conversation??": anything,
  "store??": boolean,
  "max_output_tokens??": integer(16),
  "max_tool_calls??": integer(1),
  "temperature??": number(0, 2),
  "top_p??": number(0, 1),
  "top_logprobs??": integer(0, 20),
  "reasoning??": shape({
    "effort??": oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "summary??": oneOf("auto", "concise", "detailed"),
    "generate_summary??": oneOf("auto", "concise", "detailed"),
    "context??": oneOf("auto", "current_turn", "all_turns"),
    "mode??": oneOf("standard", "pro"),
  }),
  "text?": shape({ "format?": FORMAT, "verbosity??": oneOf("low", "medium", "high") }),
  "tools?": list(TOOLS, 0, 128),
  "tool_choice?": TOOL_CHOICE,
  "parallel_tool_calls??": boolean,
  "include??": list(oneOf(...INCLUDES)),
  "stream??": boolean,
  "stream_options??": shape({ "include_obfuscation?": boolean }),
  "background??": boolean,
  "service_tier??": oneOf("auto", "default", "flex", "scale", "priority"),
  "metadata??": anyObject,
  // In no reference; Codex sends it to the service.
  "client_metadata?": anyObject,
  "safety_identifier?": string(),
  "prompt_cache_key?": string(),
  "truncation??": oneOf("auto", "disabled"),
  "user?": string(),
});

/** What the backend keeps of its own answers. */
export interface ResponseStore {
  ledger: Ledger;
  /** Calls of stored answers that have no output yet, by response id. */
  openCalls: Map<string, readonly string[]>;
  /** Item ids of calls and messages -> the reasoning item that must stand before them. */
  reasonedBy: Map<string, string>;
}

export function checkResponsesBody(body: JsonObject, store: ResponseStore): void {
  BODY(body, "");
  if (body.previous_response_id && body.conversation)
    refuse("previous_response_id", "cannot be used in conjunction with conversation");
  checkTools(body);
  checkInput(body, store);
  const format = (body.text as { format?: JsonObject } | undefined)?.format;
  if (format?.strict === true) checkStrictSchema(format.schema, "text.format.schema");
  if (format?.type === "json_object" && !/json/i.test(JSON.stringify(body.input) + String(body.instructions))) {
    refuse("input", "'input' must contain the word 'json' in some form");
  }
  if (!isReasoningModel(String(body.model))) {
    if (isObject(body.reasoning) && body.reasoning.effort) unsupported("reasoning.effort");
    return;
  }
  for (const field of ["temperature", "top_p"]) {
    if (body[field] !== undefined && body[field] !== null && body[field] !== 1) unsupported(field);
  }
}

function unsupported(field: string): never {
  const message = `Unsupported parameter: '${field}' is not supported with this model.`;
  throw new Refused("invalid", field, message, 400, "unsupported_parameter");
}

function checkTools({ tools, tool_choice }: JsonObject): void {
  const definitions = (tools ?? []) as JsonObject[];
  for (const [index, { strict, parameters }] of definitions.entries()) {
    if (strict === true) checkStrictSchema(parameters, `tools[${index}].parameters`);
  }
  const named = definitions.flatMap(({ name }) => (name === undefined ? [] : [name]));
  if (new Set(named).size < named.length) refuse("tools", "tool names must be unique");
  if (tool_choice === "required" && definitions.length === 0) refuse("tool_choice", "tools must be specified");
  if (isObject(tool_choice) && tool_choice.name !== undefined && !named.includes(tool_choice.name)) {
    refuse("tool_choice", `Tool choice '${tool_choice.name}' not found in 'tools' parameter.`);
  }
}

function checkInput(body: JsonObject, { ledger, openCalls, reasonedBy }: ResponseStore): void {
  const previous = body.previous_response_id as string | undefined | null;
  const stored = previous ? openCalls.get(previous) : [];
  if (stored === undefined) {
    const message = `Previous response with id '${previous}' not found.`;
    throw new Refused("invalid", "previous_response_id", message, 400, "previous_response_not_found");
  }
  const items = Array.isArray(body.input) ? (body.input as JsonObject[]) : [];
  const open = new Set(stored);
  const reasoning = new Set<string>();
  for (const [index, entry] of items.entries()) {
    const field = `input[${index}]`;
    const { type } = entry;
    if (type === "reasoning") {
      checkReasoning(entry, items[index + 1], field, ledger);
      reasoning.add(String(entry.id));
    }
    const needed = reasonedBy.get(String(entry.id));
    if (needed !== undefined && !reasoning.has(needed)) {
      refuse(
        field,
        `Item '${entry.id}' of type '${type}' was provided without its required 'reasoning' item: '${needed}'.`,
      );
    }
    if (type === "function_call" || type === "custom_tool_call") {
      if (open.has(String(entry.call_id))) refuse(`${field}.call_id`, `duplicate call_id ${entry.call_id}`);
      open.add(String(entry.call_id));
    }
    if (type === "function_call_output" || type === "custom_tool_call_output") {
      if (!open.delete(String(entry.call_id)))
        refuse(`${field}.call_id`, `No tool call found for function call output with call_id ${entry.call_id}.`);
    }
    if (type === "item_reference") throw new Refused("invalid", field, `Item with id '${entry.id}' not found.`, 404);
  }
  if (open.size > 0) refuse("input", `No tool output found for function call ${[...open].join(", ")}.`);
}

function checkReasoning(entry: JsonObject, next: JsonObject | undefined, field: string, ledger: Ledger): void {
  const { encrypted_content: sealed, id } = entry;
  // Nothing is kept of stateless answers: an item without its sealed form cannot be found again.
  if (typeof sealed !== "string") {
    throw new Refused(
      "invalid",
      field,
      `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false.`,
      404,
    );
  }
  if (!ledger.holds(sealed, String(id))) {
    throw new Refused(
      "invalid",
      `${field}.encrypted_content`,
      "The encrypted content could not be verified.",
      400,
      "invalid_encrypted_content",
    );
  }
  const isFollowed = next !== undefined && next.role !== "user" && next.type !== "function_call_output";
  if (!isFollowed) refuse(field, `Item '${id}' of type 'reasoning' was provided without its required following item.`);
}
