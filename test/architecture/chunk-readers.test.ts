// Every further place that looks into the chunks of a chat stream is one more that has to know what engines make of them.

import { expect, test } from "bun:test";
import { sourceFiles, sourceText } from "./source-files.ts";

/** What reads `choices` of chunks, and why it is not one of the others. */
const READERS: Readonly<Record<string, string>> = {
  "chat/response-decoder.ts": "the neutral model: the choice of a chunk, for chat/stream-decoder.ts",
  "joined-chunks.ts": "what chunks say together: answers that are kept, streams that go on elsewhere",
  "stream-ending.ts": "bytes that pass: whether the answer was complete, where the counts stand",
  "chat/answer-edits.ts": "bytes that pass: what has to be changed in them",
};

/** What writes them, reads whole answers, or takes them from one of the readers. */
const OTHERS = [
  "chat/change-form.ts",
  "chat/response-encoder.ts",
  "chunk-watch.ts",
  "chunks.ts",
  "completions/kept-answers.ts",
  "completions/response-encoder.ts",
  "generate-content/content-watch.ts",
  "kept-chunks.ts",
];

/** Here it is how many answers a request asks for, or a marker in the bytes. */
const OF_REQUESTS =
  /read-(?:edit-)?request\.ts$|request-encoder\.ts$|^generate-content\/request-decoder\.ts$|^(?:request-summary|request-words|decode-request|moderations|protocol)\.ts$|^(?:images|audio)\/pass-through\.ts$/;

test("the readers of chat chunks are those of the list", async () => {
  const found: string[] = [];
  for (const file of sourceFiles.filter((name) => name.startsWith("protocols/"))) {
    const name = file.slice("protocols/".length);
    const code = (await sourceText(file)).replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, "");
    if (!OF_REQUESTS.test(name) && /\bchoices\b/.test(code)) found.push(name);
  }
  expect(found.sort()).toEqual([...Object.keys(READERS), ...OTHERS].sort());
});
