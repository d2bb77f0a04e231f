// Every further place that looks into the chunks of a chat stream is one more that has to know what engines make of them.

import { expect, test } from "bun:test";
import { sourceFiles, sourceText } from "./source-files.ts";

/** What reads `choices` of chunks, and why it is not one of the others. */
const READERS: Readonly<Record<string, string>> = {
  "chat/response-decoder.ts": "the neutral model: the choice of a chunk, for chat/stream-decoder.ts",
  "joined-chunks.ts": "what chunks say together: answers that are kept, streams that go on elsewhere",
  "stream-ending.ts": "bytes that pass: whether the answer was complete",
  "chunk-watch.ts": "bytes that pass: where the counts stand",
  "kept-chunks.ts": "bytes that are kept: whether an event tells of an error",
  "chat/answer-edits.ts": "bytes that pass: what has to be changed in them",
};

/** `choices` of a parsed chunk or answer: a member that is looked at, or taken out of its object. */
const READS = /\??\.choices\b(?! \?\?)|\{ choices \}: JsonObject/;
/** What a request asks for, and whole answers of clients. */
const OTHERS = /^protocols\/(?:chat|responses)\/request-encoder\.ts$|change-form\.ts$|kept-answers\.ts$/;

test("the readers of chat chunks are those of the list", async () => {
  const found: string[] = [];
  for (const file of sourceFiles.filter((name) => name.startsWith("protocols/") && !OTHERS.test(name))) {
    const code = (await sourceText(file)).replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, "");
    if (READS.test(code.replaceAll("this.#choices", ""))) found.push(file.slice("protocols/".length));
  }
  expect(found.sort()).toEqual(Object.keys(READERS).sort());
});
