// What a person has answered with "always" in a session: for a tool in the session's folders, and for a tool in a folder
// outside of them and all below it. One never counts for the other.

import { isInside } from "./paths.ts";

type RememberedAnswer = "allow" | "reject";

export interface Remembered {
  /** @param folder - outside of the session's folders; left out: inside */
  get(tool: string, folder?: string): RememberedAnswer | undefined;
  set(tool: string, answer: RememberedAnswer, folder?: string): void;
}

/** Answers that are kept; beyond that the oldest is asked for again. */
const MAX_ANSWERS = 1_000;

export function rememberedAnswers(): Remembered {
  /** The oldest first. */
  let answers: { tool: string; folder: string | undefined; answer: RememberedAnswer }[] = [];

  function countsFor(where: string | undefined, folder: string | undefined): boolean {
    if (where === undefined || folder === undefined) return where === folder;
    return isInside(folder, where);
  }

  return {
    get(tool, folder) {
      const found = answers.filter((each) => each.tool === tool && countsFor(each.folder, folder));
      // Of a folder and one below it, what was rejected stays so.
      return found.find(({ answer }) => answer === "reject")?.answer ?? found[0]?.answer;
    },
    set(tool, answer, folder) {
      const others = answers.filter((each) => each.tool !== tool || each.folder !== folder);
      answers = [...others, { tool, folder, answer }].slice(-MAX_ANSWERS);
    },
  };
}
