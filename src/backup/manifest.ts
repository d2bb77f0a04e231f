// The manifest of a backup: what is in it, with checksums. It is written last, so that a backup without one is not whole.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { BackupProblem } from "./problem.ts";

export const MANIFEST_NAME = "manifest.json";
const FORMAT = 1;

export const PARTS = {
  data: "data",
  /** The configuration file and what it names beside itself, by their paths from its folder. */
  config: "config",
  /** Everything else; a restore does not put it back. */
  elsewhere: "elsewhere",
} as const;

/** Below the backup and nowhere else, whatever the manifest says. */
const safePath = z
  .string()
  .max(4_096)
  .refine((path) => {
    const [part, ...rest] = path.split("/");
    const names = Object.values(PARTS) as string[];
    const isName = (name: string) => name !== "" && name !== "." && name !== ".." && !/[\0\\]/.test(name);
    return names.includes(part as string) && rest.length > 0 && rest.every(isName);
  }, "is no path of a backup");

const manifestSchema = z.object({
  format: z.literal(FORMAT),
  /** The version of the program. */
  version: z.string(),
  created_at: z.string(),
  /** Time of the newest statistics in the backup; null: there are none. */
  statistics_of: z.string().nullable(),
  /** The configuration file in it; null: there was none. */
  config_file: safePath.nullable(),
  /** Names of the environment variables that the configuration file refers to; they are not part of a backup. */
  variables: z.array(z.string()),
  /** Where the parts of `elsewhere` come from. */
  elsewhere: z.array(z.object({ path: safePath, from: z.string() })),
  files: z.array(z.object({ path: safePath, bytes: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) })),
});

export type Manifest = z.infer<typeof manifestSchema>;
export type BackedUpFile = Manifest["files"][number];

export function manifestText(manifest: Omit<Manifest, "format">): string {
  return `${JSON.stringify({ format: FORMAT, ...manifest }, null, 2)}\n`;
}

/** Throws BackupProblem. */
export async function readManifest(folder: string): Promise<Manifest> {
  const path = join(folder, MANIFEST_NAME);
  const text = await readFile(path, "utf8").catch((cause) => {
    throw new BackupProblem(`${path} cannot be read: ${folder} is no backup, or one that was not finished`, { cause });
  });
  const parsed = manifestSchema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new BackupProblem(`${path} is damaged, or was written by a newer version of Signalbox`, {
    cause: parsed.error,
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // told as a damaged manifest
  }
}
