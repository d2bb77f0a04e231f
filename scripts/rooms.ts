// The rooms of the source, as the table in ARCHITECTURE.md declares them: name, floor and purpose.

import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Room {
  /** A folder of src, or a file in it. */
  name: string;
  /** Imports go down, to a higher number. */
  floor: number;
  purpose: string;
}

const PAGE = readFileSync(join(import.meta.dir, "..", "ARCHITECTURE.md"), "utf8");

/** From the top floor to the bottom. */
export const ROOMS: readonly Room[] = [...PAGE.matchAll(/^\| (\d+) \| `([\w.-]+)` \| (.+) \|$/gm)].map(
  ([, floor, name = "", purpose = ""]) => ({ name, floor: Number(floor), purpose }),
);
