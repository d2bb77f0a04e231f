// The files of the dashboard as one text: part of an executable, or in the cache folder.

import type { Asset, Assets } from "./asset.ts";

export function packAssets({ files, ...names }: Assets): string {
  const packed = [...files].map(([name, { type, plain, gzip, br }]) => {
    return { name, type, plain: toBase64(plain), gzip: toBase64(gzip), br: toBase64(br) };
  });
  return JSON.stringify({ ...names, files: packed });
}

type Packed = Pick<Assets, "script" | "ownScript" | "theme" | "style"> & {
  files: ({ name: string } & Record<keyof Asset, string>)[];
};

export function unpackAssets(text: string): Assets {
  const { files, ...names } = JSON.parse(text) as Packed;
  const unpacked = files.map(({ name, type, plain, gzip, br }): [string, Asset] => [
    name,
    { type, plain: fromBase64(plain), gzip: fromBase64(gzip), br: fromBase64(br) },
  ]);
  return { ...names, files: new Map(unpacked) };
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text, "base64"));
}
