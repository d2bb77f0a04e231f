// Image requests for Google's models and their answers, against a backend that refuses what the real one does not know.

import { afterAll, describe, expect, test } from "bun:test";
import { drawn, PIXEL, startStrictGeminiImages } from "../../../test/support/strict/gemini-images.ts";
import type { JsonObject } from "../../lib/json.ts";
import { AnswerFailed } from "../protocol.ts";
import { decodeImageAnswer, encodeImageRequest, googleImageModel, joinImageAnswers } from "./images.ts";

const FLASH = "gemini-2.5-flash-image";
const PRO = "gemini-3-pro-image";

const backend = startStrictGeminiImages();
afterAll(() => backend.stop());

const configOf = (value: JsonObject, model: string) => {
  const { body, dropped } = encodeImageRequest({ prompt: "a cat", ...value }, { model });
  const { imageConfig } = body.generationConfig as JsonObject;
  return [imageConfig, dropped.map(({ feature }) => feature)];
};

async function ask(value: JsonObject, model: string): Promise<number> {
  const { body } = encodeImageRequest(value, { model });
  const response = await fetch(`${backend.url}/v1beta/models/${model}:generateContent`, {
    method: "POST",
    headers: { "x-goog-api-key": "sekret" },
    body: JSON.stringify(body),
  });
  return response.status;
}

describe("requests", () => {
  test.each([
    [undefined, "1:1", "1K"],
    ["auto", "1:1", "1K"],
    ["256x256", "1:1", "1K"],
    ["512x512", "1:1", "1K"],
    ["1024x1024", "1:1", "1K"],
    ["1536x1024", "3:2", "1K"],
    ["1024x1536", "2:3", "1K"],
    ["1024x1792", "9:16", "1K"],
    ["1792x1024", "16:9", "1K"],
    ["2048x2048", "1:1", "2K"],
    ["4096x4096", "1:1", "4K"],
    ["2048x1536", "4:3", "2K"],
  ])("the size %p", async (size, aspectRatio, imageSize) => {
    expect(configOf({ size }, PRO)).toEqual([{ aspectRatio, imageSize }, []]);
    // Older models refuse the member.
    expect(configOf({ size }, `models/${FLASH}`)).toEqual([{ aspectRatio }, imageSize === "1K" ? [] : ["size"]]);
    for (const model of [PRO, FLASH]) expect(await ask({ prompt: "a cat", size }, model)).toBe(200);
    expect(backend.refusals).toEqual([]);
  });

  test.each(["1000x7", "large", "1024x1000", "100000x100000"])("the size %s is left to the model", (size) => {
    expect(configOf({ size }, PRO)).toEqual([undefined, ["size"]]);
  });

  test("carry the prompt, and list what is lost", () => {
    const value = {
      ...{ model: "nano-banana", prompt: "a cat", n: 2, size: null, user: "u", response_format: "url", stream: true },
      ...{ quality: "high", style: "vivid", background: null, partial_images: 2 },
    };
    const { body, dropped } = encodeImageRequest(value, { model: FLASH });
    expect(body).toEqual({
      contents: [{ role: "user", parts: [{ text: "a cat" }] }],
      generationConfig: { responseModalities: ["TEXT", "IMAGE"], imageConfig: { aspectRatio: "1:1" } },
    });
    expect(dropped.map(({ feature }) => feature)).toEqual(["quality", "style", "partial_images"]);
  });

  test("the mock refuses what the real models do", async () => {
    const strict = startStrictGeminiImages({ models: [FLASH, "gemini-2.5-flash"] });
    const config = { responseModalities: ["IMAGE"] };
    const refused = async (generationConfig: JsonObject, model = FLASH, more: JsonObject = {}) => {
      const contents = [{ role: "user", parts: [{ text: "a cat" }] }];
      const response = await fetch(`${strict.url}/v1beta/models/${model}:generateContent`, {
        method: "POST",
        headers: { "x-goog-api-key": "sekret" },
        body: JSON.stringify({ contents, generationConfig, ...more }),
      });
      return response.status;
    };
    expect(await refused(config)).toBe(200);
    expect(await refused({ ...config, imageConfig: { aspectRatio: "1:1", imageSize: "1K" } })).toBe(400);
    expect(await refused({ ...config, imageConfig: { aspectRatio: "7:5" } })).toBe(400);
    expect(await refused({ ...config, imageConfig: { size: "1024x1024" } })).toBe(400);
    expect(await refused({ ...config, n: 2 })).toBe(400);
    expect(await refused(config, FLASH, { prompt: "a cat" })).toBe(400);
    expect(await refused({})).toBe(400);
    expect(await refused(config, "gemini-2.5-flash")).toBe(400);
    expect(await refused(config, PRO)).toBe(404);
    expect(strict.refusals).toHaveLength(8);
    await strict.stop();
  });
});

test.each([
  [[], "nano-banana", FLASH],
  [[], "nano-banana-pro", PRO],
  [["img-alt-pro"], "nano-banana-pro", PRO],
  [["nano-banana"], "nano-banana", FLASH],
  [["gemini-2.5-flash-image-preview", "nano-banana"], "nano-banana", "gemini-2.5-flash-image-preview"],
  [["gemini-3-pro-image-preview"], "nano-banana-pro", "gemini-3-pro-image-preview"],
  [["gemini-3-pro-image-preview"], PRO, "gemini-3-pro-image-preview"],
  [["gemini-3-pro-image-preview", PRO], PRO, PRO],
  [[], "gemini-3-pro-image-preview", "gemini-3-pro-image-preview"],
  [["gemini-3.1-flash-image"], "gemini-3.1-flash-image", "gemini-3.1-flash-image"],
  [["mine"], "mine", "mine"],
])("a backend with %j is asked for %s as %s", (listed, model, expected) => {
  expect(googleImageModel(listed, model)).toBe(expected);
});

describe("answers", () => {
  const asBase64 = { created: 7, responseFormat: "b64_json" } as const;

  test("as base64 and as data URL, with text and counts", () => {
    const usage = {
      ...{ total_tokens: 1301, input_tokens: 6, output_tokens: 1295 },
      input_tokens_details: { text_tokens: 6, image_tokens: 0 },
      output_tokens_details: { text_tokens: 5, image_tokens: 1290 },
    };
    const revised_prompt = "Here it is.";
    const about = { created: 7, usage };
    expect(decodeImageAnswer(drawn(), asBase64)).toEqual({ ...about, data: [{ b64_json: PIXEL, revised_prompt }] });
    const url = `data:image/png;base64,${PIXEL}`;
    expect(decodeImageAnswer(drawn(), { created: 7, responseFormat: "url" })).toEqual({
      ...about,
      data: [{ url, revised_prompt }],
    });
  });

  test("without text, without counts, in the other case; sketches are left out", () => {
    const parts = [
      { text: "let me see", thought: true },
      { inlineData: { mimeType: "image/png", data: "AAAA" }, thought: true },
      { inline_data: { mime_type: "image/jpeg", data: "BBBB" } },
    ];
    const answer = { candidates: [{ content: { parts }, finishReason: "STOP" }] };
    expect(decodeImageAnswer(answer, asBase64)).toEqual({ created: 7, data: [{ b64_json: "BBBB" }] });
    const counted = { ...answer, usageMetadata: { promptTokenCount: 2, candidatesTokenCount: 3 } };
    expect(decodeImageAnswer(counted, asBase64).usage).toEqual({
      ...{ total_tokens: 5, input_tokens: 2, output_tokens: 3 },
      input_tokens_details: { text_tokens: 2, image_tokens: 0 },
      output_tokens_details: { text_tokens: 0, image_tokens: 3 },
    });
  });

  const ended = (finishReason: string, parts: object[] = []) => ({
    candidates: [{ content: { parts }, finishReason }],
  });
  test.each([
    [{ promptFeedback: { blockReason: "PROHIBITED_CONTENT" } }, 400, "content_policy_violation"],
    [ended("SAFETY"), 400, "content_policy_violation"],
    [ended("IMAGE_SAFETY"), 400, "content_policy_violation"],
    [ended("PROHIBITED_CONTENT"), 400, "content_policy_violation"],
    [ended("IMAGE_PROHIBITED_CONTENT"), 400, "content_policy_violation"],
    [ended("NO_IMAGE"), 502, "no_image"],
    [ended("STOP", [{ text: "my secret prompt" }]), 502, "no_image"],
    [ended("MAX_TOKENS"), 502, "no_image"],
    [{}, 502, "no_image"],
    [{ candidates: "x", promptFeedback: 3 }, 502, "no_image"],
    [{ error: { code: 429, status: "RESOURCE_EXHAUSTED", message: "slow" } }, 429, "rate_limit_exceeded"],
  ])("%j is a failure", (answer, status, code) => {
    let failure: AnswerFailed | undefined;
    try {
      decodeImageAnswer(answer as JsonObject, asBase64);
    } catch (error) {
      failure = error as AnswerFailed;
    }
    expect(failure).toBeInstanceOf(AnswerFailed);
    expect(failure?.failure).toMatchObject({ status, code });
    expect(failure?.message).not.toContain("secret");
  });

  test("of several requests become one", () => {
    const bodies = ["one", "two", "three"].map((text) =>
      new TextEncoder().encode(JSON.stringify(decodeImageAnswer(drawn(text), asBase64))),
    );
    const answer = JSON.parse(new TextDecoder().decode(joinImageAnswers(bodies)));
    expect(answer.data.map(({ revised_prompt }: JsonObject) => revised_prompt)).toEqual(["one", "two", "three"]);
    expect(answer.created).toBe(7);
    expect(answer.usage).toEqual({
      ...{ total_tokens: 3903, input_tokens: 18, output_tokens: 3885 },
      input_tokens_details: { text_tokens: 18, image_tokens: 0 },
      output_tokens_details: { text_tokens: 15, image_tokens: 3870 },
    });
  });
});
