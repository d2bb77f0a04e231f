import { describe, expect, test } from "bun:test";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ContentPart } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { ExternalFetchRequest, FetchExternal } from "./fetch-external.ts";
import { inlineMedia, needsInlining } from "./inline-media.ts";

const PNG = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1");
const PNG_URL = "https://files.example/a.png";
const PDF_URL = "https://files.example/a.pdf";

const image = (url: string): ContentPart => ({ type: "image", source: { kind: "url", url }, detail: "low" });
const document = (url: string): ContentPart => ({ type: "document", source: { kind: "url", url }, title: "a" });
const inlined = { kind: "base64", mediaType: "image/png", data: PNG.toString("base64") } as const;

function requestOf(parts: ContentPart[], body: Record<string, unknown> = {}): GenerationRequest {
  return {
    model: "m",
    system: [],
    messages: [{ role: "user", parts }],
    tools: [],
    sampling: {},
    reasoning: {},
    stream: false,
    origin: { protocol: "chat", body },
    extensions: {},
  };
}

function fetcher(bytes: Uint8Array = PNG): { fetchExternal: FetchExternal; asked: ExternalFetchRequest[] } {
  const asked: ExternalFetchRequest[] = [];
  const fetchExternal: FetchExternal = async (request) => {
    asked.push(request);
    request.onBytes?.(bytes.length);
    return { mediaType: "image/png", bytes };
  };
  return { fetchExternal, asked };
}

describe("when there is nothing to do", () => {
  const parts: ContentPart[][] = [
    [{ type: "text", text: PNG_URL }],
    [{ type: "image", source: inlined }],
    [{ type: "image", source: { kind: "file", fileId: "f" } }],
    [{ type: "audio", source: { kind: "url", url: PNG_URL } }],
  ];
  test.each(parts)("%j", async (...given) => {
    const request = requestOf(given);
    expect(needsInlining(request)).toBe(false);
    const { fetchExternal } = fetcher();
    expect(await inlineMedia(request, { fetchExternal })).toBe(request);
  });

  test("URLs that the target reads itself, and kinds that it can hold", () => {
    expect(needsInlining(requestOf([image(PNG_URL)]), { keeps: (url) => url === PNG_URL })).toBe(false);
    expect(needsInlining(requestOf([document(PDF_URL)]), { kinds: ["image"] })).toBe(false);
    expect(needsInlining(requestOf([document(PDF_URL)]))).toBe(true);
  });
});

test("URLs become base64, also inside tool results; all else stays", async () => {
  const result: ContentPart = {
    type: "tool-result",
    callId: "c",
    parts: [{ type: "text", text: "t" }, image(PNG_URL) as never],
  };
  const request = requestOf([{ type: "text", text: "t" }, image(PNG_URL), result]);
  const before = structuredClone(request);
  const { fetchExternal, asked } = fetcher();
  const replaced = await inlineMedia(request, { fetchExternal });
  const expected = { type: "image", source: inlined, detail: "low" };
  expect(replaced.messages[0]?.parts).toEqual([
    { type: "text", text: "t" },
    expected,
    { ...result, parts: [{ type: "text", text: "t" }, expected] },
  ] as ContentPart[]);
  expect(request).toEqual(before);
  expect(replaced.origin).toBe(request.origin);
  // One file, though two parts name it.
  expect(asked).toHaveLength(1);
});

test("images and documents are fetched under their own rules", async () => {
  const { fetchExternal, asked } = fetcher();
  await inlineMedia(requestOf([image(PNG_URL), document(PNG_URL)]), { fetchExternal });
  expect(asked.map(({ accepted }) => accepted)).toEqual([{ kinds: ["image"] }, { plainText: true }]);
});

test("the client's own field is named", async () => {
  const body = {
    messages: [{ role: "user", content: [{ type: "text" }, { type: "image_url", image_url: { url: PNG_URL } }] }],
  };
  const { fetchExternal, asked } = fetcher();
  await inlineMedia(requestOf([image(PNG_URL)], body), { fetchExternal });
  await inlineMedia(requestOf([image(PNG_URL)]), { fetchExternal });
  expect(asked.map(({ param }) => param)).toEqual(["messages[0].content[1].image_url.url", "messages"]);
});

test("a data URL is taken apart without a fetch, and checked", async () => {
  const { fetchExternal, asked } = fetcher();
  const url = `data:image/jpeg;base64,${inlined.data}`;
  const replaced = await inlineMedia(requestOf([image(url)]), { fetchExternal });
  expect(replaced.messages[0]?.parts).toMatchObject([{ source: inlined }]);
  expect(asked).toHaveLength(0);
  for (const bad of ["data:image/png,x", "data:text/html;base64,PGh0bWw+"]) {
    await expect(inlineMedia(requestOf([image(bad)]), { fetchExternal })).rejects.toMatchObject({ status: 400 });
  }
});

test("too many files", async () => {
  const { fetchExternal, asked } = fetcher();
  const parts = Array.from({ length: 21 }, (_, index) => image(`${PNG_URL}?${index}`));
  await expect(inlineMedia(requestOf(parts), { fetchExternal })).rejects.toMatchObject({ status: 400 });
  expect(asked).toHaveLength(0);
});

test("too many bytes together", async () => {
  const { fetchExternal } = fetcher(new Uint8Array(18 * 1024 * 1024));
  const parts = [0, 1, 2].map((index) => image(`${PNG_URL}?${index}`));
  await expect(inlineMedia(requestOf(parts), { fetchExternal })).rejects.toThrow("too large together");
});

test("one failure ends the others", async () => {
  const signals: AbortSignal[] = [];
  const fetchExternal: FetchExternal = ({ url, signal }) => {
    if (signal !== undefined) signals.push(signal);
    if (url === PDF_URL) throw new GatewayError(ERRORS.invalidRequest, "no");
    return new Promise(() => {});
  };
  await expect(inlineMedia(requestOf([image(PNG_URL), document(PDF_URL)]), { fetchExternal })).rejects.toThrow("no");
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
});
