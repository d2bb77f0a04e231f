// The recorded-style answers: each whole and streamed, by the format of the backend that gave them.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dir, "fixtures");

export const FORMATS = ["chat", "local", "responses", "messages", "generate-content", "converse"] as const;

export type FixtureFormat = (typeof FORMATS)[number];

export interface Fixture {
  name: string;
  format: FixtureFormat;
  stream: Uint8Array;
  whole: string;
}

export const FIXTURES: readonly Fixture[] = [
  ...FORMATS.flatMap((format) => read(format, () => format)),
  ...read("by-hand", (title) => FORMATS.find((format) => title.startsWith(`${format}-`))),
];

function read(folder: string, formatOf: (title: string) => FixtureFormat | undefined): Fixture[] {
  const titles = readdirSync(join(FOLDER, folder)).filter((file) => file.endsWith(".sse"));
  return titles.sort().map((file) => {
    const title = file.replace(/\.sse$/, "");
    const format = formatOf(title);
    if (format === undefined) throw new Error(`no format has the fixture ${file}`);
    const path = join(FOLDER, folder, title);
    return {
      name: `${folder}/${title}`,
      format,
      stream: new Uint8Array(readFileSync(`${path}.sse`)),
      whole: readFileSync(`${path}.json`, "utf8"),
    };
  });
}
