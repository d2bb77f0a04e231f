// What the dashboard consists of in the browser: its script and its style under names that change with their content, as
// they are and compressed, in memory.

import type { Assets } from "./asset.ts";
import { unpackAssets } from "./pack.ts";

/**
 * In an executable the files are part of it (scripts/build.ts); else they are made of the sources beside this file, and kept for
 * the next start.
 */
export async function loadAssets(env: Readonly<Record<string, string | undefined>>): Promise<Assets> {
  const embedded = Bun.embeddedFiles.find((file) => EMBEDDED.test((file as File).name));
  if (embedded !== undefined) return unpackAssets(await embedded.text());
  const [{ bundleAssets }, { cacheFolder, keptAssets }] = await Promise.all([
    import("./bundle.ts"),
    import("./asset-cache.ts"),
  ]);
  return await keptAssets(cacheFolder(env), bundleAssets);
}

/** The bundler puts a hash into the name. */
const EMBEDDED = /^dashboard(?:-\w+)?\.assets$/;
