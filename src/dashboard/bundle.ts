// Makes the files of the dashboard of their sources (web/), by the runtime's own bundler.

import { join } from "node:path";
import type { Asset, Assets } from "./asset.ts";

const ENTRIES = ["main.tsx", "me.tsx", "theme.ts", "style.css"] as const;

/** Text of this size is compressed best, once, and sent many times. */
const BROTLI_QUALITY = 11;

export async function bundleAssets(): Promise<Assets> {
  const { outputs } = await Bun.build({
    entrypoints: ENTRIES.map((entry) => join(import.meta.dir, "web", entry)),
    target: "browser",
    minify: true,
    // Else JSX becomes the calls that are meant for debugging.
    define: { "process.env.NODE_ENV": '"production"' },
    naming: "[name]-[hash].[ext]",
    throw: true,
  });
  const made = await Promise.all(
    outputs.map(async (output): Promise<[string, Asset]> => {
      const plain = new Uint8Array(await output.arrayBuffer());
      const name = output.path.slice(output.path.lastIndexOf("/") + 1);
      const type = name.endsWith(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8";
      return [name, { type, plain, gzip: Bun.gzipSync(plain, { level: 9 }), br: await toBrotli(plain) }];
    }),
  );
  const files = new Map(made);
  return { script: nameOf("main"), ownScript: nameOf("me"), theme: nameOf("theme"), style: nameOf("style"), files };

  function nameOf(entry: string): string {
    const found = [...files.keys()].find((name) => name.startsWith(`${entry}-`));
    if (found === undefined) throw new Error(`the bundler has made no file of ${entry}`);
    return found;
  }
}

/** Beside the requests of the gateway, not between them. */
function toBrotli(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const { brotliCompress, constants } = process.getBuiltinModule("node:zlib");
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
  return new Promise((resolve, reject) => {
    brotliCompress(bytes, { params }, (error, compressed) => {
      if (error === null) resolve(new Uint8Array(compressed));
      else reject(error);
    });
  });
}
