// Reads the files that the configuration and the command line name, and the facts of the data folder: prompts, facts about
// models, authorities of backends, keys of token issuers, and modules of hooks.

import { loadKeySets } from "../access/jwt/key-set-files.ts";
import { loadAuthorities } from "../backends/authorities.ts";
import type { Attached, AttachmentReader } from "../config/compile/attachments.ts";
import { MISSING } from "../config/files/watch.ts";
import type { Settings } from "../config/sections/registry.ts";
import { resolvePath } from "../config/values/paths.ts";
import { type CheckPlace, describeProblem } from "../config/values/problems.ts";
import { findHookModules } from "../hooks/hook-modules.ts";
import { factsFile, readFactsFile } from "../models/facts-file.ts";
import { loadModelMetadata } from "../models/metadata-file.ts";
import { loadPromptFiles } from "../prompts/prompt-files.ts";

/** `metadataOption` is the file of --model-metadata, which stands in for the one that the configuration names. */
export function namedFileReaders(metadataOption: string | undefined): readonly AttachmentReader[] {
  const metadata: AttachmentReader =
    metadataOption === undefined ? readMetadata : (_, { home }) => readOption(metadataOption, home);
  return [readPrompts, metadata, readFacts, readAuthorities, readKeySets, readHookModules];
}

/** No change of the configuration is refused because of them. */
async function readFacts({ server }: Settings, { baseDir, home }: CheckPlace): Promise<Attached> {
  const path = factsFile(resolvePath(server.data_dir, baseDir, home));
  const read = await readFactsFile(path);
  if ("problems" in read) return { problem: read.problems.join("\n  ") };
  // One that is not there yet is watched, too.
  return { facts: read.entries, files: new Map([[path, read.hash ?? MISSING]]) };
}

async function readAuthorities({ backends }: Settings, place: CheckPlace): Promise<Attached> {
  const { texts, hashes, problems } = await loadAuthorities(backends, place);
  if (problems.length > 0) return { problems, problem: problems.map(describeProblem).join("; ") };
  return { authorities: texts, files: hashes };
}

async function readKeySets({ api_keys }: Settings, place: CheckPlace): Promise<Attached> {
  const { texts, hashes, problems } = await loadKeySets(api_keys.jwt, place);
  if (problems.length > 0) return { problems, problem: problems.map(describeProblem).join("; ") };
  return { keySets: texts, files: hashes };
}

/** Only their hashes: they are read by their own processes. */
async function readHookModules({ hooks }: Settings, place: CheckPlace): Promise<Attached> {
  const { paths, hashes, problems } = await findHookModules(hooks, place);
  if (problems.length > 0) return { problems, problem: problems.map(describeProblem).join("; ") };
  return { hookModules: paths, files: hashes };
}

async function readPrompts({ global_prompts }: Settings, { baseDir, home }: CheckPlace): Promise<Attached> {
  const read = await loadPromptFiles(global_prompts, { baseDir, home });
  if (!read.ok) return { problems: read.problems, problem: read.problems.map(describeProblem).join("; ") };
  const folder = resolvePath(global_prompts.prompts_dir, baseDir, home);
  const files = [...read.hashes].map(([name, hash]) => [resolvePath(name, folder, home), hash] as const);
  return { promptFiles: read.files, files: new Map(files) };
}

async function readMetadata({ model_metadata: { file } }: Settings, { baseDir, home }: CheckPlace): Promise<Attached> {
  if (file === undefined) return {};
  const path = resolvePath(file, baseDir, home);
  const read = await loadModelMetadata(path);
  if (read.ok) return { metadata: read.entries, files: new Map([[path, read.hash]]) };
  return {
    problems: read.problems.map((message) => ({ path: ["model_metadata", "file"], message })),
    problem: ["model_metadata.file:", ...read.problems].join("\n  "),
  };
}

/** No change of the configuration is refused because of a file that it does not name. */
async function readOption(option: string, home: string | undefined): Promise<Attached> {
  const read = await loadModelMetadata(option);
  if (!read.ok) return { problem: ["--model-metadata:", ...read.problems].join("\n  ") };
  return { metadata: read.entries, files: new Map([[resolvePath(option, process.cwd(), home), read.hash]]) };
}
