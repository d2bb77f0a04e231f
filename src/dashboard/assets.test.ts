// The files of the dashboard: few bytes, names that follow the content, and the same out of an executable.

import { beforeAll, expect, test } from "bun:test";
import { dirname, join } from "node:path";
import type { Assets } from "./asset.ts";
import { bundleAssets } from "./bundle.ts";
import { packAssets, unpackAssets } from "./pack.ts";
import { renderPage } from "./page.ts";

/** Of everything that a browser loads for the dashboard, and of the script of the page for holders of keys. */
const MOST_BYTES = 99_000;
const MOST_OWN_BYTES = 20_000;

const WEB = join(import.meta.dir, "web");

let assets: Assets;
beforeAll(async () => {
  assets = await bundleAssets();
});

test("are small", () => {
  const own = assets.files.get(assets.ownScript);
  const loaded = [...assets.files.values()].filter((asset) => asset !== own);
  const sum = (encoding: "br" | "gzip") => loaded.reduce((bytes, asset) => bytes + asset[encoding].length, 0);
  expect(own?.gzip.length).toBeWithin(5_000, MOST_OWN_BYTES);
  expect(sum("gzip")).toBeWithin(5_000, MOST_BYTES);
  expect(sum("br")).toBeWithin(5_000, sum("gzip"));
});

test("are compressed as they are", () => {
  const { brotliDecompressSync } = process.getBuiltinModule("node:zlib");
  for (const { plain, gzip, br } of assets.files.values()) {
    expect(Buffer.from(Bun.gunzipSync(gzip)).equals(plain)).toBe(true);
    expect(brotliDecompressSync(br).equals(plain)).toBe(true);
  }
});

test("names follow the content, and the page names them", async () => {
  const page = renderPage(assets);
  for (const name of [assets.script, assets.theme, assets.style]) {
    expect(name).toMatch(/^(main|theme|style)-\w{8,}\.(js|css)$/);
    expect(page).toContain(`"dashboard/${name}"`);
  }
  expect([...(await bundleAssets()).files.keys()]).toEqual([...assets.files.keys()]);
});

test("load nothing and run nothing from elsewhere", () => {
  for (const { plain } of assets.files.values()) {
    const text = new TextDecoder().decode(plain);
    // Two names of the standard for pictures in pages are no addresses that are loaded.
    const addresses = text.match(/https?:\/\/[\w.]+/g)?.filter((address) => address !== "http://www.w3.org") ?? [];
    expect(addresses).toEqual([]);
    expect(text).not.toMatch(/outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/);
  }
});

test("come from their folder and from packages alone: nothing else is in the key that they are kept by", async () => {
  const outside: string[] = [];
  for (const file of new Bun.Glob("**/*.{ts,tsx}").scanSync(WEB)) {
    if (file.includes(".test.")) continue;
    const text = await Bun.file(join(WEB, file)).text();
    for (const [line, path = ""] of text.matchAll(/^(?:import|export) (?!type )[^;]*?from "(\.[^"]+)"/gm)) {
      if (!join(WEB, dirname(file), path).startsWith(`${WEB}/`)) outside.push(`${file}: ${line}`);
    }
  }
  expect(outside).toEqual([]);
});

test("make markup of no text", async () => {
  // Preact can set innerHTML, for a property that no source of the dashboard uses; the page's Trusted Types refuse it, too.
  for await (const file of new Bun.Glob("**/*.{ts,tsx}").scan({ cwd: WEB, absolute: true })) {
    const isFine = !/innerHTML/i.test(await Bun.file(file).text());
    expect({ file, isFine }).toEqual({ file, isFine: true });
  }
});

test("packed and unpacked they are the same", () => {
  const unpacked = unpackAssets(packAssets(assets));
  expect(unpacked).toEqual(assets);
});
