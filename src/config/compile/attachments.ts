// Files that the settings name and that are read with them, once for each version: prompts, facts about models, authorities
// of backends, keys of token issuers, and modules of hooks.

import type { FactEntry, MetadataEntry } from "../sections/metadata-entry.ts";
import type { Settings } from "../sections/registry.ts";
import type { CheckPlace, Problem } from "../values/problems.ts";

export interface Attachments {
  /** Texts of the prompt files, by the names that the configuration gives them. */
  promptFiles: ReadonlyMap<string, string>;
  /** PEM texts of the files that backends[].tls.ca names, by the names there. */
  authorities: ReadonlyMap<string, string>;
  /** Texts of the files that api_keys.jwt[].jwks_file names, by the names there. */
  keySets: ReadonlyMap<string, string>;
  /** Absolute paths of the files that hooks[].module names, by the names there. */
  hookModules: ReadonlyMap<string, string>;
  /** Entries of the model-metadata file. */
  metadata: readonly MetadataEntry[];
  /** Those that --update-facts has written into the data folder. */
  facts: readonly FactEntry[];
  /** Absolute paths of the files, with the hashes of what was read. */
  files: ReadonlyMap<string, string>;
  /** Set if the files cannot be used; then these are their earlier contents. */
  problem?: string;
}

/** A file that the command line or the configuration names is missing or wrong. */
export class AttachmentProblem extends Error {
  override readonly name = "AttachmentProblem";
}

/** A part of it. The problems are those of the configuration, and undefined for files that it does not name. */
export type Attached = Partial<Attachments> & { problems?: readonly Problem[] };

/** A reader of a layer above, which knows what the files mean. */
export type AttachmentReader = (settings: Settings, place: CheckPlace) => Promise<Attached>;

export function joinAttachments(parts: readonly Attached[]): Attachments {
  const files = new Map(parts.flatMap((part) => [...(part.files ?? [])]));
  const own = parts.map(({ problems: _, ...part }) => part);
  const texts = { promptFiles: new Map(), authorities: new Map(), keySets: new Map() };
  const nothing = { ...texts, hookModules: new Map(), metadata: [], facts: [] };
  return Object.assign(nothing, ...own, { files });
}

/**
 * Of a configuration that is in force. Only the files of --model-metadata and of --update-facts may be missing from it, because
 * the configuration does not name them: the facts that were read before stay.
 */
export function attachmentsInForce(read: Attachments, before: Attachments): Attachments {
  if (read.problem === undefined) return read;
  return { ...read, metadata: before.metadata, facts: before.facts, files: new Map([...before.files, ...read.files]) };
}
