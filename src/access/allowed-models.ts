// Which models a key, a token or an organization is for.

import { compileGlob } from "../lib/glob.ts";
import { spellingsOfModel } from "../names.ts";
import type { Caller } from "./caller.ts";

/** @param names - with `*` for any text; undefined: every model */
export function modelsOf(names: readonly string[] | undefined): Pick<Caller, "allowsModel"> {
  if (names === undefined) return {};
  const patterns = names.flatMap(spellingsOfModel).map(compileGlob);
  return { allowsModel: (model) => patterns.some((matches) => matches(model)) };
}
