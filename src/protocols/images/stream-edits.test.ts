// Image streams of every sort of backend, in each of the three styles, however their bytes are cut.

import { describe, expect, test } from "bun:test";
import { passThrough } from "../registry.ts";
import { EventFramer, readEvents } from "../sse.ts";
import { type ImageStreamOptions, imageStreamEdits } from "./stream-edits.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (given: Uint8Array | undefined) => new TextDecoder().decode(given);
const event = (value: { type: string; [key: string]: unknown }) =>
  `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;

const USAGE = {
  total_tokens: 30,
  input_tokens: 10,
  output_tokens: 20,
  input_tokens_details: { text_tokens: 10, image_tokens: 0 },
};
const COMMON = { created_at: 7, size: "1024x1024", quality: "high", background: "opaque", output_format: "png" };
const partial = (prefix = "image_generation") =>
  event({ type: `${prefix}.partial_image`, b64_json: "AAAA", ...COMMON, partial_image_index: 0 });
const completed = (b64_json = "BBBB", prefix = "image_generation") =>
  event({ type: `${prefix}.completed`, b64_json, ...COMMON, usage: USAGE });
const complete = (b64_json = "BBBB") => event({ type: "image_generation.complete", created: 7, b64_json });
const usage = event({ type: "image_generation.usage", usage: USAGE });
const done = event({ type: "done" });

interface Passed {
  text: string;
  verdict: string;
  tokens: [number, number] | undefined;
}

/** What a client gets of a stream that ends in order, cut at the given size. */
function pass(stream: string, options: Partial<ImageStreamOptions> = {}, size = 1e9): Passed {
  const edits = imageStreamEdits({ style: "both", prefix: "image_generation", images: 1, createdAt: 5, ...options });
  const watch = passThrough("images").watch({ choices: options.images ?? 1, edits });
  const framer = new EventFramer();
  const all = bytes(stream);
  let got = "";
  for (let start = 0; start < all.length; start += size) {
    const events = framer.push(all.slice(start, start + size));
    if (events !== undefined) got += text(watch.push(events));
  }
  const verdict = watch.verdict();
  if (verdict === "finished") got += text(watch.endMarker);
  const counted = watch.usage;
  return { text: got, verdict, tokens: counted && [counted.input.total, counted.output.total] };
}

const told = (stream: string) =>
  readEvents(stream).map(({ name, data }) => {
    const value = JSON.parse(data);
    expect(value.type).toBe(name);
    return value;
  });
const types = (stream: string) => told(stream).map(({ type }) => type);

describe("a backend with the public API's events", () => {
  const stream = partial() + completed();

  test("passes byte for byte in the public style", () => {
    const passed = pass(stream, { style: "openai" });
    expect(passed).toEqual({ text: stream, verdict: "done", tokens: [10, 20] });
  });

  test("is told in both ways", () => {
    const passed = pass(stream);
    expect(passed.verdict).toBe("done");
    expect(told(passed.text)).toEqual([
      { type: "image_generation.partial_image", created: 7, b64_json: "AAAA", ...COMMON, partial_image_index: 0 },
      { type: "image_generation.complete", created: 7, b64_json: "BBBB" },
      { type: "image_generation.completed", b64_json: "BBBB", ...COMMON, usage: USAGE },
      { type: "image_generation.usage", usage: USAGE },
      { type: "done" },
    ]);
    expect(passed.text).toContain(completed());
  });

  test("is told in the specification's way", () => {
    const passed = pass(stream, { style: "specification" });
    expect(told(passed.text)).toEqual([
      { type: "image_generation.partial_image", created: 7, b64_json: "AAAA", ...COMMON, partial_image_index: 0 },
      { type: "image_generation.complete", created: 7, b64_json: "BBBB" },
      { type: "image_generation.usage", usage: USAGE },
      { type: "done" },
    ]);
  });

  test("of several images, the end comes behind the last, with the counts of all", () => {
    const several = completed("AAAA") + completed("BBBB");
    const passed = pass(several, { images: 2 });
    expect(types(passed.text)).toEqual([
      ...["image_generation.complete", "image_generation.completed"],
      ...["image_generation.complete", "image_generation.completed"],
      ...["image_generation.usage", "done"],
    ]);
    expect(told(passed.text).at(-2)?.usage).toEqual({
      ...{ total_tokens: 60, input_tokens: 20, output_tokens: 40 },
      input_tokens_details: { text_tokens: 20, image_tokens: 0 },
    });
    expect([passed.verdict, passed.tokens]).toEqual(["done", [20, 40]]);
    expect(pass(completed("AAAA"), { images: 2 }).verdict).toBe("incomplete");
  });

  test("has edits with names of their own", () => {
    const passed = pass(partial("image_edit") + completed("BBBB", "image_edit"), { prefix: "image_edit" });
    expect(types(passed.text)).toEqual([
      ...["image_edit.partial_image", "image_edit.complete", "image_edit.completed", "image_edit.usage", "done"],
    ]);
  });

  test("is read whatever the order of its members is, with and without names", () => {
    const odd = `: hello\n\ndata:{ "created_at" : 7, "b64_json" : "QUJD" , "partial_image_index":1, "type": "image_generation.partial_image" }\r\n\r\n`;
    const last = `id: 4\ndata: {"b64_json":"${"Q".repeat(20_000)}","type":"image_generation.completed"}\n\n`;
    const passed = pass(odd + last);
    expect(passed.text.startsWith(`: hello\n\ndata:{"created":7, "created_at" : 7, `)).toBe(true);
    const [first, complete, completedEvent, end] = readEvents(passed.text).map(({ data }) => JSON.parse(data));
    expect(first.created).toBe(7);
    expect(complete).toEqual({ type: "image_generation.complete", created: 5, b64_json: "Q".repeat(20_000) });
    expect(completedEvent).toEqual({ b64_json: "Q".repeat(20_000), type: "image_generation.completed" });
    expect(end).toEqual({ type: "done" });
    expect(passed.verdict).toBe("done");
  });

  test("says nothing of the counts where it has none", () => {
    const uncounted = event({ type: "image_generation.completed", b64_json: "AA", created_at: 3 });
    expect(types(pass(uncounted).text)).toEqual(["image_generation.complete", "image_generation.completed", "done"]);
  });
});

describe("a backend with the specification's events", () => {
  const stream = event({ type: "image_generation.partial_image", partial_image_index: 0, b64_json: "AA", created: 7 });

  test("passes byte for byte in that style", () => {
    const all = stream + complete() + usage + done;
    expect(pass(all, { style: "specification" })).toEqual({ text: all, verdict: "done", tokens: [10, 20] });
  });

  test("gets the public API's events beside them", () => {
    const passed = pass(stream + complete() + usage + done);
    expect(told(passed.text)).toEqual([
      { type: "image_generation.partial_image", created_at: 7, partial_image_index: 0, b64_json: "AA", created: 7 },
      { type: "image_generation.complete", created: 7, b64_json: "BBBB" },
      { type: "image_generation.completed", created_at: 7, b64_json: "BBBB", usage: USAGE },
      { type: "image_generation.usage", usage: USAGE },
      { type: "done" },
    ]);
    expect(types(pass(complete() + usage + done, { style: "openai" }).text)).toEqual(["image_generation.completed"]);
  });

  test("may leave the end out", () => {
    const passed = pass(complete());
    expect(passed.verdict).toBe("finished");
    expect(types(passed.text)).toEqual(["image_generation.complete", "image_generation.completed", "done"]);
    const alone = pass(complete(), { style: "openai" });
    expect([alone.verdict, types(alone.text)]).toEqual(["finished", ["image_generation.completed"]]);
  });
});

describe("a backend with both sets of events, as another gateway of this kind", () => {
  const both = (style: "both" | "specification" | "openai", images = 1) => {
    const stream = partial() + (images === 2 ? completed("AAAA") : "") + completed();
    return pass(stream, { style, images }).text;
  };

  test.each([1, 2])("passes as it is, whatever it was asked for: %d images", (images) => {
    expect(pass(both("both", images), { images }).text).toBe(both("both", images));
    expect(types(pass(both("both", images), { images, style: "openai" }).text)).toEqual(types(both("openai", images)));
    const specification = { images, style: "specification" } as const;
    expect(pass(both("both", images), specification).text).toBe(both("specification", images));
    expect(types(pass(both("specification", images), { images }).text)).toEqual(types(both("both", images)));
  });

  test("the order of the two does not matter", () => {
    const stream = completed() + complete() + usage + done;
    expect(pass(stream).text).toBe(pass(completed()).text);
    expect(pass(stream, { style: "openai" }).text).toBe(completed());
  });
});

describe("a whole answer in place of a stream", () => {
  const answer = (data: object[], more: object = {}) =>
    `data: ${JSON.stringify({ created: 9, data, ...more, usage: USAGE })}\n\n`;

  test("becomes the events of its image", () => {
    const passed = pass(answer([{ b64_json: "AAAA", revised_prompt: "a cat" }], { size: "1024x1024" }));
    expect(told(passed.text)).toEqual([
      { type: "image_generation.complete", created: 9, b64_json: "AAAA" },
      {
        ...{ type: "image_generation.completed", created_at: 9, size: "1024x1024", revised_prompt: "a cat" },
        ...{ usage: USAGE, b64_json: "AAAA" },
      },
      { type: "image_generation.usage", usage: USAGE },
      { type: "done" },
    ]);
    expect([passed.verdict, passed.tokens]).toEqual(["done", [10, 20]]);
  });

  test("of several, in each style; fewer than were asked for are all there are", () => {
    const stream = answer([{ b64_json: "AAAA" }, { url: "https://pictures.example/b.png" }]);
    const publicly = pass(stream, { style: "openai", images: 4, prefix: "image_edit" });
    expect(told(publicly.text)).toEqual([
      { type: "image_edit.completed", created_at: 9, b64_json: "AAAA" },
      { type: "image_edit.completed", created_at: 9, url: "https://pictures.example/b.png", usage: USAGE },
    ]);
    expect(publicly.verdict).toBe("done");
    expect(told(pass(stream, { style: "specification", images: 4 }).text)).toEqual([
      { type: "image_generation.complete", created: 9, b64_json: "AAAA" },
      { type: "image_generation.complete", created: 9, url: "https://pictures.example/b.png" },
      { type: "image_generation.usage", usage: USAGE },
      { type: "done" },
    ]);
  });
});

describe("everything else", () => {
  test("unknown events, comments and data that is no JSON pass", () => {
    const stream = `: hi\n\n${event({ type: "image_generation.queued", place: 3 })}data: no json\n\nevent: x\ndata: {}\n\n`;
    const passed = pass(stream);
    expect([passed.text, passed.verdict]).toEqual([stream, "incomplete"]);
  });

  test("an end marker comes last", () => {
    const passed = pass(`${completed()}data: [DONE]\n\n`);
    expect(passed.text.endsWith(`${done}data: [DONE]\n\n`)).toBe(true);
    expect(passed.verdict).toBe("done");
    expect(pass("data: [DONE]\n\n", { style: "openai" })).toMatchObject({ text: "data: [DONE]\n\n", verdict: "done" });
  });

  test("a broken stream gets no end, and a backend's error is its own", () => {
    expect(pass(partial()).verdict).toBe("incomplete");
    expect(types(pass(partial()).text)).toEqual(["image_generation.partial_image"]);
    for (const error of [
      `event: error\ndata: {"error":{"message":"no"}}\n\n`,
      `data: {"type":"error","error":{}}\n\n`,
    ]) {
      const passed = pass(partial() + error);
      expect([passed.verdict, passed.text.endsWith(error)]).toEqual(["reported", true]);
    }
  });

  test("every cut gives the same", () => {
    const streams = [partial() + completed(), partial() + complete() + usage + done, `: c\n\n${completed()}${done}`];
    for (const stream of [...streams, streams[0]?.replaceAll("\n", "\r\n") ?? ""]) {
      for (const style of ["both", "specification", "openai"] as const) {
        const whole = pass(stream, { style });
        for (const size of [1, 2, 3, 7, 64, 100]) expect(pass(stream, { style }, size)).toEqual(whole);
      }
    }
  });

  test("a large picture goes through whole", () => {
    const picture = "iVBOR".repeat(1_000_000);
    const passed = pass(completed(picture));
    expect(told(passed.text).map(({ b64_json }) => b64_json?.length)).toEqual([5e6, 5e6, undefined, undefined]);
    expect(passed.text.includes(completed(picture))).toBe(true);
  });

  test("whole answers are not touched, and counted", () => {
    const edits = imageStreamEdits({ style: "both", prefix: "image_edit", images: 1, createdAt: 5 });
    const body = bytes("{}");
    expect(edits.whole(body, {})).toBe(body);
    expect(passThrough("images").usageOf?.({ usage: USAGE })).toEqual({ input: { total: 10 }, output: { total: 20 } });
  });
});
