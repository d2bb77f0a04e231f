// Document -> settings with all checks: compiles it, reads the files it includes, and checks rules across sections.

import { maskedSecretProblems } from "../change/mask.ts";
import { documentJsonSchema } from "../schema/schema-export.ts";
import { schemaAt } from "../schema/schema-path.ts";
import { holdsSecrets, isSecret, isUrl } from "../schema/section-patterns.ts";
import type { ConfigDocument, Settings } from "../sections/registry.ts";
import type { Environment } from "../values/expand.ts";
import { resolvePath } from "../values/paths.ts";
import { elsewhere, located, type Problem, type SettingsCheck, type Source } from "../values/problems.ts";
import { unsafeValue } from "../values/unsafe-value.ts";
import { isNestedTooDeeply, type Mapping, type Path, valueAt, withValueAt } from "../values/values.ts";
import { type Attached, type AttachmentReader, joinAttachments } from "./attachments.ts";
import { compileDocument } from "./compile.ts";
import { CROSS_CHECKS } from "./cross-checks.ts";
import { type KeyFile, readKeyFile } from "./key-file.ts";
import { nameProblems } from "./name-checks.ts";
import type { Compiled } from "./snapshot.ts";

export interface DocumentSurroundings {
  env: Environment;
  home: string | undefined;
  /** Rules of layers above this one; paths start at the section. */
  checks: readonly SettingsCheck<Settings>[];
  /** Readers of the files that the settings name. */
  readers: readonly AttachmentReader[];
}

interface PrepareOptions extends DocumentSurroundings {
  baseDir: string;
  /** Problems that were found before. */
  problems?: readonly Problem[];
  source?: Source;
  /** A path with the keys as the sender of the document wrote them. */
  writtenPath?: (path: Path) => Path;
}

export interface PreparedDocument {
  /** With canonical keys, strings as written. */
  document: ConfigDocument;
  overrides: Compiled["overrides"];
  /** Undefined when there are problems, those across sections left aside. */
  compiled: Compiled | undefined;
  /** The validated document, which may be wrong in any way: overrides applied, strings expanded. */
  input: Mapping;
  /** The answer to a question about the settings; undefined where it is about a section that is wrong. */
  ask<Answer>(question: (settings: Settings) => Answer | Promise<Answer>): Promise<Answer | undefined>;
  problems: Problem[];
  /** Found by rules over several fields or sections: over names always, else as far as those sections are right. */
  crossProblems: Problem[];
}

export async function prepareDocument(written: Mapping, options: PrepareOptions): Promise<PreparedDocument> {
  const { env, baseDir, home, source = {}, writtenPath = (path) => path } = options;
  const locate = (problem: Problem): Problem => {
    const value = shownValue(problem.path, written);
    return located({ ...problem, path: writtenPath(problem.path), ...(value !== undefined && { value }) }, source);
  };
  const compilation = compileDocument(written, env);
  const given = options.problems ?? [];
  // A caller who may not name a variable must not learn whether it exists.
  const found = [...given, ...elsewhere(compilation.problems, given)];
  if (!isNestedTooDeeply(written)) {
    const unsafe = unsafeValue(written);
    if (unsafe !== undefined) found.push(unsafe);
    found.push(...maskedSecretProblems(compilation.document));
  }
  const problems = found.map(locate);

  const keyFilePath = valueAt(compilation.input, ["api_keys", "api_keys_file"]);
  const hasKeyFile = typeof keyFilePath === "string" && keyFilePath !== "";
  const isUsable = hasKeyFile && !found.some(({ path }) => path.join(".") === "api_keys.api_keys_file");
  const keyFile = isUsable ? await readKeyFile(resolvePath(keyFilePath, baseDir, home), env) : undefined;
  if (keyFile) problems.push(...keyFile.problems);

  const wrong = new Set(found.map(({ path }) => String(path[0] ?? "")));
  if (keyFile !== undefined && keyFile.problems.length > 0) wrong.add("api_keys");
  const known = problems.length === 0 ? compilation.settings : compilation.settingsWithout(wrong);
  const settings = known && withKeys(known, keyFile);
  const ask = asker(settings, wrong);

  const { document, input, overrides } = compilation;
  const inlineKeys = listOfKeys(input).length;
  const toProblem = (problem: Problem): Problem =>
    locateInKeyFile(keyFile, inlineKeys, problem) ?? locate(compilation.attribute(problem));
  const ofNames = nameProblems(withKeyEntries(withoutSections(input, given), keyFile)).map(toProblem);
  const crossProblems = elsewhere(ofNames, problems);
  const place = { baseDir, home };
  for (const check of [...CROSS_CHECKS, ...options.checks]) {
    crossProblems.push(...((await ask((sound) => check(sound, place))) ?? []).map(toProblem));
  }
  const attached: Attached[] = [];
  for (const reader of options.readers) attached.push((await ask((sound) => reader(sound, place))) ?? {});
  for (const { problems: ofFile = [] } of attached) crossProblems.push(...ofFile.map(toProblem));

  const includedFiles = new Map(keyFile && [[keyFile.file, keyFile.hash]]);
  const isRight = settings !== undefined && problems.length === 0;
  const compiled = isRight
    ? { document, settings, attachments: joinAttachments(attached), overrides, includedFiles }
    : undefined;
  return { document, overrides, input, ask, problems, compiled, crossProblems };
}

/** Ends a rule that reads a section with mistakes: its result would be useless, or even false. */
class SectionIsWrong extends Error {}

function asker(settings: Settings | undefined, wrong: ReadonlySet<string>): PreparedDocument["ask"] {
  // A problem without a section is one of the whole document.
  if (settings === undefined || wrong.has("")) return async () => undefined;
  const sound = new Proxy(settings, {
    get(target, name) {
      if (wrong.has(String(name))) throw new SectionIsWrong();
      return Reflect.get(target, name);
    },
  });
  return async (question) => {
    try {
      return await question(sound);
    } catch (error) {
      if (error instanceof SectionIsWrong) return undefined;
      throw error;
    }
  };
}

/** Neither a list nor a mapping, nor left out. */
const NOT_READ = "not read";

/** Sections that were refused before they were read: whether a value in them equals another one is not told. */
function withoutSections(input: Mapping, refused: readonly Problem[]): Mapping {
  const names = new Set(refused.map(({ path }) => path[0]));
  if (names.has(undefined)) return {};
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, names.has(name) ? NOT_READ : value]));
}

function listOfKeys(input: Mapping): readonly unknown[] {
  const keys = valueAt(input, ["api_keys", "keys"]);
  return Array.isArray(keys) ? keys : [];
}

function withKeyEntries(input: Mapping, keyFile: KeyFile | undefined): Mapping {
  if (keyFile === undefined) return input;
  return withValueAt(input, ["api_keys", "keys"], [...listOfKeys(input), ...keyFile.entries]) as Mapping;
}

function withKeys(settings: Settings, keyFile: KeyFile | undefined): Settings {
  if (keyFile === undefined) return settings;
  return { ...settings, api_keys: { ...settings.api_keys, keys: [...settings.api_keys.keys, ...keyFile.keys] } };
}

/** A problem of a key that came from the key file belongs to that file. */
function locateInKeyFile(keyFile: KeyFile | undefined, inlineKeys: number, problem: Problem): Problem | undefined {
  const [section, list, index, ...rest] = problem.path;
  if (keyFile === undefined || section !== "api_keys" || list !== "keys") return undefined;
  if (typeof index !== "number" || index < inlineKeys) return undefined;
  return located({ path: ["keys", index - inlineKeys, ...rest], message: problem.message }, keyFile);
}

const MAXIMUM_SHOWN_LENGTH = 200;

/** Only plain values at keys that the schema knows: what stands in a wrong place may be a secret. */
function shownValue(path: Path, document: Mapping): unknown {
  const value = valueAt(document, path);
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return undefined;
  if (path.length < 2 || schemaAt(documentJsonSchema(), path) === undefined) return undefined;
  if (isSecret(path) || isUrl(path)) return undefined;
  // Text beside a secret, or in place of what holds one, could be the secret in the wrong line.
  if (typeof value === "string" && (holdsSecrets(path.slice(0, -1)) || holdsSecrets(path))) return undefined;
  return typeof value === "string" && value.length > MAXIMUM_SHOWN_LENGTH ? undefined : value;
}
