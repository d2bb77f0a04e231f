// What a file of the dashboard is, and all of them together.

/** Of a file, by what a browser accepts of Content-Encoding. */
export interface Asset {
  type: string;
  plain: Uint8Array<ArrayBuffer>;
  gzip: Uint8Array<ArrayBuffer>;
  br: Uint8Array<ArrayBuffer>;
}

export interface Assets {
  /** Names of the files, by what the page needs them for. */
  script: string;
  /** Of the page for holders of keys. */
  ownScript: string;
  theme: string;
  style: string;
  files: ReadonlyMap<string, Asset>;
}
