// /admin/config/prompts…: the prompt files, listed, read, written, and read again from disk.

import { z } from "zod";
import type { Settings } from "../config/sections/registry.ts";
import { formatPath } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createSerial } from "../lib/serial.ts";
import { loadPromptFiles, type PromptFiles, type PromptFolder, toPrompt } from "../prompts/prompt-files.ts";
import type { Call, Endpoint } from "../server/endpoint.ts";
import { adminRoute, answer } from "./endpoint.ts";
import { listPrompts, type PromptDirectory, readPromptFile, writePromptFile } from "./prompt-folder.ts";
import { invalidFields } from "./refusals.ts";
import { type BodyParts, readFields } from "./request.ts";

export interface PromptParts extends BodyParts {
  /** Those that run now. */
  settings(): Settings;
  promptFiles: PromptAccess;
}

export interface PromptAccess extends PromptFolder {
  /** The prompts in force, by the names that the configuration gives the files. */
  current(): PromptFiles;
  /** From the next request on. */
  use(files: PromptFiles): Promise<void>;
}

const update = z.strictObject({ content: z.string({ error: "expected the text of the file" }) });

/** Writes that wait for others; each holds a body in memory. */
const MAXIMUM_WAITING = 20;

export function promptRoutes(parts: PromptParts): Endpoint[] {
  const writes = createSerial(MAXIMUM_WAITING);
  const directory = (): PromptDirectory => {
    const { baseDir, home } = parts.promptFiles;
    return { settings: parts.settings().global_prompts, baseDir, home };
  };
  const inTurn = async (task: () => Promise<Response>): Promise<Response> => {
    const running = writes.run(task);
    if (running !== undefined) return await running;
    throw new GatewayError(ERRORS.changesUnavailable, "Too many changes are waiting. Try again in 1 s.", {
      headers: { "Retry-After": "1" },
    });
  };

  return [
    adminRoute("GET", "/admin/config/prompts", async (call) => {
      const prompts = await listPrompts(directory());
      return answer(call, { prompts, total: prompts.length });
    }),
    adminRoute("POST", "/admin/config/prompts/reload", (call) => inTurn(() => reload(call, directory(), parts))),
    adminRoute("GET", "/admin/config/prompts/{path...}", async (call) =>
      answer(call, await readPromptFile(directory(), call.parameters.path)),
    ),
    adminRoute("PUT", "/admin/config/prompts/{path...}", async (call) => {
      const { content } = await readFields(update, call, parts);
      return await inTurn(() => write(call, directory(), content, parts));
    }),
  ];
}

async function write(
  call: Call<"path">,
  directory: PromptDirectory,
  content: string,
  { promptFiles }: PromptParts,
): Promise<Response> {
  const { path } = call.parameters;
  const { wasCreated, names } = await writePromptFile(directory, path, content);
  const text = toPrompt(Buffer.from(content));
  // Only this file: another one that is broken at the moment is no reason not to use it.
  if (names.length > 0)
    await promptFiles.use(new Map([...promptFiles.current(), ...names.map((name) => [name, text] as const)]));
  const done = `The prompt file was ${wasCreated ? "created" : "updated"}`;
  const effect = names.length > 0 ? "the next request uses it" : "no setting of global_prompts names it";
  return answer(call, { success: true, message: `${done}; ${effect}.`, path });
}

async function reload(
  call: Call,
  { settings, ...folder }: PromptDirectory,
  { promptFiles }: PromptParts,
): Promise<Response> {
  const read = await loadPromptFiles(settings, folder);
  if (!read.ok) throw invalidFields(read.problems.map(({ path, message }) => ({ field: formatPath(path), message })));
  await promptFiles.use(read.files);
  const reloaded = read.files.size;
  return answer(call, { success: true, message: `Prompt files that were read again: ${reloaded}.`, reloaded });
}
