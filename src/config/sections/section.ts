// What a configuration section is: one zod schema per section is the source of validation, defaults and JSON Schema.

import type { z } from "zod";

/** immediate: the next request sees it; gradual: what runs finishes with the old values; or only after a restart. */
export type ReloadClass = "immediate" | "gradual" | "requires_restart";

/**
 * The use of a text of the configuration that names a folder or a file that is read, a file of prompts_dir, a file or a folder
 * that is written, or, behind "unix:", a socket; redis-socket: the same in the URL of a Redis server.
 */
export type FilePathUse =
  | { use: "folder" | "data-folder" | "socket" | "redis-socket" }
  | {
      use: "file" | "prompt" | "written";
      endings: readonly string[];
      /** Texts that are the content of such a file themselves, and name none. */
      isContent?: (text: string) => boolean;
    };

/** A secret that lets callers in, and those that it replaced and that are still valid. */
export interface CredentialSpec {
  /** The mapping that holds it; with ".*" behind it every entry of a list. */
  at: string;
  /** Where they stand in it: the one that counts now, then earlier ones. */
  secrets: readonly [current: string, ...earlier: string[]];
  /** Keys of the mapping that say which secrets are valid and until when. An end is `expires_at`. */
  fields: readonly string[];
}

export interface SectionDefinition<Schema extends z.ZodType = z.ZodType> {
  /** Shown in listings and in the generated template. */
  description: string;
  /** Every field has a default, so that `{}` (or `[]` for a list) is a valid section. */
  schema: Schema;
  /** The admin API lists the section under `extensions`, not under `sections`. */
  isExtension?: boolean;
  /** How a change takes effect; of a section that requires a restart only its restartFields do, the rest is gradual. Default: gradual. */
  reload?: ReloadClass;
  /** Read at start only, with everything below: paths with dots below the section, without wildcards. */
  restartFields?: readonly string[];
  /** Cannot be changed through the admin API: paths with dots below the section, with everything below them. */
  fileOnlyFields?: readonly string[];
  /** Belong to the machine, as fileOnlyFields and files do: an import leaves them as they are. Same notation. */
  serverFields?: readonly string[];
  /** GET /admin/config/hot-reload-status lists each field instead of `section.*`. */
  listsFields?: boolean;
  /** Other accepted spellings of keys: path with dots below the section, `*` for any list index or map key. */
  aliases?: Readonly<Record<string, string>>;
  /** Paths of secrets, in the same notation; their values never appear in a message or a view. */
  secretPaths?: readonly string[];
  /** Those that let callers in: revoked once, only the configuration file brings them back. */
  credentials?: readonly CredentialSpec[];
  /** URLs, in the same notation, whose user and password are secrets. */
  urlPaths?: readonly string[];
  /** Fields of the section, or of each of its entries, that say where its secrets are sent, or to whom; with dots. */
  sentTo?: readonly string[];
  /**
   * Of a list: entries with one of these keys, and without a secret of their own, are let in by credentials of this machine,
   * which go where another key says. Only the configuration file changes that one.
   */
  machineCredentials?: { of: readonly string[]; unless: string; goTo: string };
  /** Texts that name something in the file system, in the same notation as the secrets. */
  filePaths?: Readonly<Record<string, FilePathUse>>;
  /**
   * Lists whose entries have a name: path of the list below the section ("" = the section itself, `*` for any list index)
   * -> the key of the name, and the key that tells those entries apart that have none.
   */
  entryNames?: Readonly<Record<string, readonly [name: string, ...otherwise: string[]]>>;
}

export function defineSection<Schema extends z.ZodType>(spec: SectionDefinition<Schema>): SectionDefinition<Schema> {
  return spec;
}
