// /admin/config/prompts…: the prompt files, listed, read, written, and read again from disk.

import { formatPath } from "../config/values/values.ts";
import { createSerial } from "../lib/serial.ts";
import { text } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter } from "../openapi/operation.ts";
import { loadPromptFiles, toPrompt } from "../prompts/prompt-files.ts";
import {
  CONFIGURATION_SCHEMAS,
  PromptFile,
  PromptFiles,
  PromptsReloaded,
  PromptUpdate,
  PromptUpdated,
} from "./config-schemas.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import {
  listPrompts,
  PROMPT_PATH_PATTERN,
  type PromptDirectory,
  readPromptFile,
  removePromptFile,
  writePromptFile,
} from "./prompt-folder.ts";
import { invalidFields, toRefusal } from "./refusals.ts";

/** Writes that wait for others; each holds a body in memory. */
const MAXIMUM_WAITING = 20;

const endpoint = adminGroup("Configuration", CONFIGURATION_SCHEMAS);
const promptFile = pathParameter("path", "Path below prompts_dir; it may contain slashes.", {
  ...text,
  pattern: PROMPT_PATH_PATTERN,
});

export function promptRoutes({
  settings,
  promptFiles,
}: Pick<AdminParts, "settings" | "promptFiles">): DescribedEndpoint[] {
  const writes = createSerial(MAXIMUM_WAITING);
  const directory = (): PromptDirectory => {
    const { baseDir, home } = promptFiles;
    return { settings: settings().global_prompts, baseDir, home };
  };
  const inTurn = async <Done>(task: () => Promise<Done>): Promise<Done> => {
    const running = writes.run(task);
    if (running === undefined) throw toRefusal({ kind: "busy" });
    return await running;
  };

  return [
    endpoint("GET /admin/config/prompts", {
      id: "listPromptFiles",
      role: "viewer",
      summary: "Prompt files",
      answers: [jsonAnswer(PromptFiles, "The files.")],
      async handle(call) {
        const prompts = await listPrompts(directory());
        return answer(call, { prompts, total: prompts.length });
      },
    }),
    endpoint("GET /admin/config/prompts/{path...}", {
      id: "getPromptFile",
      role: "viewer",
      summary: "One prompt file",
      parameters: [promptFile],
      answers: [jsonAnswer(PromptFile, "The file.")],
      handle: async (call) => answer(call, await readPromptFile(directory(), call.parameters.path)),
    }),
    endpoint("PUT /admin/config/prompts/{path...}", {
      id: "updatePromptFile",
      role: "admin",
      summary: "Write a prompt file",
      parameters: [promptFile],
      body: { schema: PromptUpdate, example: { content: "You are terse." } },
      answers: [jsonAnswer(PromptUpdated, "Written; if the configuration names it, the next request uses it.")],
      errors: [503],
      async handle(call, read) {
        const { path } = call.parameters;
        const { content } = await read();
        return await inTurn(async () => {
          const { wasCreated, names } = await writePromptFile(directory(), path, content);
          const text = toPrompt(Buffer.from(content));
          // Only this file: another one that is broken at the moment is no reason not to use it.
          if (names.length > 0)
            await promptFiles.use(new Map([...promptFiles.current(), ...names.map((name) => [name, text] as const)]));
          const done = `The prompt file was ${wasCreated ? "created" : "updated"}`;
          const effect = names.length > 0 ? "the next request uses it" : "no setting of global_prompts names it";
          return answer(call, { success: true, message: `${done}; ${effect}.`, path });
        });
      },
    }),
    endpoint("DELETE /admin/config/prompts/{path...}", {
      id: "deletePromptFile",
      role: "admin",
      summary: "Remove a prompt file that the configuration does not name",
      parameters: [promptFile],
      answers: [jsonAnswer(PromptUpdated, "Removed.")],
      errors: [409, 503],
      handle(call) {
        const { path } = call.parameters;
        return inTurn(async () => {
          await removePromptFile(directory(), path);
          return answer(call, { success: true, message: "The prompt file was removed.", path });
        });
      },
    }),
    endpoint("POST /admin/config/prompts/reload", {
      id: "reloadPromptFiles",
      role: "admin",
      summary: "Read all prompt files again",
      answers: [jsonAnswer(PromptsReloaded, "Read.")],
      errors: [503],
      handle: (call) =>
        inTurn(async () => {
          const { settings: prompts, ...folder } = directory();
          const read = await loadPromptFiles(prompts, folder);
          if (!read.ok) {
            throw invalidFields(read.problems.map(({ path, message }) => ({ field: formatPath(path), message })));
          }
          await promptFiles.use(read.files);
          const reloaded = read.files.size;
          return answer(call, { success: true, message: `Prompt files that were read again: ${reloaded}.`, reloaded });
        }),
    }),
  ];
}
