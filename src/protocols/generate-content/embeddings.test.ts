// Embeddings of the OpenAI format over batchEmbedContents.

import { describe, expect, test } from "bun:test";
import type { Part } from "@google/genai";
import fc from "fast-check";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { DecodeError } from "../protocol.ts";
import {
  decodeEmbeddings,
  type EmbeddingContext,
  encodeEmbeddings,
  isMultimodal,
  readMultimodalInput,
} from "./embeddings.ts";

const TEXT_MODEL = "gemini-embedding-001";
const MODEL = "gemini-embedding-2-preview";
const PNG = "data:image/png;base64,AAAA";

function encode(body: JsonObject, model = TEXT_MODEL) {
  return encodeEmbeddings({ model: "asked", ...body }, { model });
}

function partsOf(input: unknown, model = MODEL): Part[][] {
  return readMultimodalInput(input, model).map(({ parts }) => parts as Part[]);
}

function refusalOf(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("encodeEmbeddings", () => {
  test("a text and several", () => {
    expect(encode({ input: "a" }).bodies).toEqual([
      { requests: [{ model: "models/gemini-embedding-001", content: { parts: [{ text: "a" }] } }] },
    ]);
    const { bodies, dropped } = encode({ input: ["a", "b"], dimensions: 256, task_type: "CLUSTERING", user: "u" });
    expect(bodies).toEqual([
      {
        requests: ["a", "b"].map((text) => ({
          model: "models/gemini-embedding-001",
          content: { parts: [{ text }] },
          taskType: "CLUSTERING",
          outputDimensionality: 256,
        })),
      },
    ]);
    expect(dropped).toEqual([{ feature: "user" }]);
    expect(refusalOf(() => encode({ input: "a", task_type: "ODD" })).param).toBe("task_type");
  });

  test("more than a hundred are cut into batches, in order", () => {
    const input = Array.from({ length: 201 }, (_, index) => `text ${index}`);
    const { bodies, context } = encode({ input });
    expect(context.counts).toEqual([100, 100, 1]);
    const texts = bodies.flatMap(({ requests }) =>
      (requests as { content: { parts: Part[] } }[]).map(({ content }) => content.parts[0]?.text),
    );
    expect(texts).toEqual(input);
  });

  const parts: [name: string, entry: unknown, expected: Part[]][] = [
    ["text", { type: "text", text: "a" }, [{ text: "a" }]],
    ["input_text", { type: "input_text", text: "a" }, [{ text: "a" }]],
    [
      "image_url",
      { type: "image_url", image_url: { url: PNG } },
      [{ inlineData: { mimeType: "image/png", data: "AAAA" } }],
    ],
    ["input_image", { type: "input_image", image_url: PNG }, [{ inlineData: { mimeType: "image/png", data: "AAAA" } }]],
    [
      "input_audio",
      { type: "input_audio", input_audio: { data: "AAAA", format: "mp3" } },
      [{ inlineData: { mimeType: "audio/mpeg", data: "AAAA" } }],
    ],
    [
      "audio_url",
      { type: "audio_url", audio_url: { url: "data:audio/wav;base64,AAAA" } },
      [{ inlineData: { mimeType: "audio/wav", data: "AAAA" } }],
    ],
    [
      "video_url",
      { type: "video_url", video_url: { url: "data:video/mp4;base64,AAAA" } },
      [{ inlineData: { mimeType: "video/mp4", data: "AAAA" } }],
    ],
    [
      "file",
      { type: "file", file: { file_data: "data:application/pdf;base64,AAAA" } },
      [{ inlineData: { mimeType: "application/pdf", data: "AAAA" } }],
    ],
    [
      "input_file",
      { type: "input_file", file_data: "AAAA", filename: "a.txt" },
      [{ inlineData: { mimeType: "text/plain", data: "AAAA" } }],
    ],
    [
      "a file of the vendor",
      { type: "image_url", image_url: { url: "https://generativelanguage.googleapis.com/v1beta/files/x" } },
      [{ fileData: { fileUri: "https://generativelanguage.googleapis.com/v1beta/files/x" } }],
    ],
    [
      "a list is one vector",
      ["a", { type: "image_url", image_url: { url: PNG } }],
      [{ text: "a" }, { inlineData: { mimeType: "image/png", data: "AAAA" } }],
    ],
    ["content", { content: [{ type: "text", text: "a" }, "b"] }, [{ text: "a" }, { text: "b" }]],
  ];
  test.each(parts)("%s", (_name, entry, expected) => {
    expect(partsOf(["first", entry])).toEqual([[{ text: "first" }], expected]);
    const isText = expected.every((part) => part.text !== undefined);
    if (isText) expect(partsOf([entry], TEXT_MODEL)).toEqual([expected]);
    else {
      const error = refusalOf(() => partsOf([entry], TEXT_MODEL));
      expect(error.status).toBe(400);
      expect(error.message).toContain(`${TEXT_MODEL} embeds text only`);
    }
  });

  const image = { type: "image_url", image_url: { url: PNG } };
  const refused: [name: string, input: unknown, param: string][] = [
    ["nothing", undefined, "input"],
    ["no entries", [], "input"],
    ["an empty text", "", "input"],
    ["an empty entry", ["a", ""], "input[1]"],
    ["an empty list", [[]], "input[0]"],
    ["token ids", [1, 2], "input"],
    ["lists of token ids", [[1, 2]], "input[0]"],
    ["null", [null], "input[0]"],
    ["null in a list", [["a", null]], "input[0][1]"],
    ["an unknown part", [{ type: "odd" }], "input[0].type"],
    ["a part without a type", [{}], "input[0].type"],
    ["a picture without address", [{ type: "image_url" }], "input[0].image_url"],
    ["a picture elsewhere", [{ type: "image_url", image_url: { url: "https://a.test/x.png" } }], "input[0].image_url"],
    [
      "a picture that is none",
      [{ type: "image_url", image_url: { url: "data:audio/wav;base64,AAAA" } }],
      "input[0].image_url",
    ],
    [
      "a picture that is empty",
      [{ type: "image_url", image_url: { url: "data:image/png;base64," } }],
      "input[0].image_url",
    ],
    ["audio without a format", [{ type: "input_audio", input_audio: { data: "AAAA" } }], "input[0].input_audio.format"],
    ["audio without data", [{ type: "input_audio", input_audio: null }], "input[0].input_audio.data"],
    ["a file by its id", [{ type: "file", file: { file_id: "f" } }], "input[0].file.file_data"],
    ["seven pictures", [image, [image, image, image], image, image, image], "input"],
    ["seven pictures as files", Array.from({ length: 7 }, () => ({ type: "file", file: { file_data: PNG } })), "input"],
  ];
  test.each(refused)("%s", (_name, input, param) => {
    const error = refusalOf(() => partsOf(input));
    expect(error.status).toBe(400);
    expect(error.param).toBe(param);
  });

  test("limits", () => {
    expect(partsOf([image, image, image, image, image, image])).toHaveLength(6);
    const url = (bytes: number) => `data:image/png;base64,${Buffer.alloc(bytes).toString("base64")}`;
    const most = 20 * 1024 * 1024;
    expect(partsOf([{ type: "image_url", image_url: url(most) }])).toHaveLength(1);
    expect(refusalOf(() => partsOf([{ type: "image_url", image_url: url(most + 1) }])).message).toContain("20 MiB");
  });

  test("which models embed more than text", () => {
    const known: [string, boolean][] = [
      ["gemini-embedding-001", false],
      ["text-embedding-004", false],
      ["gemini-embedding-2", true],
      ["models/gemini-embedding-2-preview", true],
      ["gemini-embedding-10", true],
    ];
    for (const [model, expected] of known) expect(isMultimodal(model)).toBe(expected);
  });
});

describe("decodeEmbeddings", () => {
  const context = (changes: Partial<EmbeddingContext> = {}): EmbeddingContext => ({
    model: "asked",
    encoding: "float",
    counts: [2],
    estimatedTokens: 7,
    normalises: false,
    ...changes,
  });
  const answer = (...vectors: number[][]) => ({ embeddings: vectors.map((values) => ({ values })) });

  test("the list of OpenAI", () => {
    expect(decodeEmbeddings([answer([1, 2], [3, 4])], context())).toEqual({
      object: "list",
      data: [
        { object: "embedding", index: 0, embedding: [1, 2] },
        { object: "embedding", index: 1, embedding: [3, 4] },
      ],
      model: "asked",
      usage: { prompt_tokens: 7, total_tokens: 7 },
    });
  });

  test("batches are joined in order, their counts added up", () => {
    const counted = (tokens: number | undefined, vector: number[]) => ({
      ...answer(vector),
      usageMetadata: { promptTokenCount: tokens },
    });
    const joined = decodeEmbeddings([counted(3, [1]), counted(4, [2])], context({ counts: [1, 1] }));
    expect(joined.data).toMatchObject([
      { index: 0, embedding: [1] },
      { index: 1, embedding: [2] },
    ]);
    expect(joined.usage).toEqual({ prompt_tokens: 7, total_tokens: 7 });
    const partly = decodeEmbeddings(
      [counted(3, [1]), counted(undefined, [2])],
      context({ counts: [1, 1], estimatedTokens: 99 }),
    );
    expect(partly.usage).toEqual({ prompt_tokens: 99, total_tokens: 99 });
  });

  test("tokens are guessed from the length", () => {
    expect(encode({ input: ["12345678", "1234567890", "ä"] }).context.estimatedTokens).toBe(2 + 3 + 1);
    expect(encode({ input: [{ type: "image_url", image_url: PNG }] }, MODEL).context.estimatedTokens).toBe(258);
  });

  test("base64 is 32-bit floats, little endian", () => {
    fc.assert(
      fc.property(fc.array(fc.float({ noNaN: true }), { minLength: 1 }), (vector) => {
        const { data } = decodeEmbeddings([answer(vector)], context({ counts: [1], encoding: "base64" }));
        const [{ embedding }] = data as [{ embedding: string }];
        const bytes = Buffer.from(embedding, "base64");
        expect(bytes.length).toBe(vector.length * 4);
        expect(vector.map((_, index) => bytes.readFloatLE(index * 4))).toEqual(vector);
      }),
    );
  });

  test("shortened vectors of the old model are brought to length 1", () => {
    expect(encode({ input: "a", dimensions: 2 }).context.normalises).toBe(true);
    expect(encode({ input: "a", dimensions: 2 }, MODEL).context.normalises).toBe(false);
    expect(encode({ input: "a" }).context.normalises).toBe(false);
    const { data } = decodeEmbeddings([answer([3, 4], [0, 0])], context({ normalises: true }));
    expect(data).toMatchObject([{ embedding: [0.6, 0.8] }, { embedding: [0, 0] }]);
  });

  test("what is none", () => {
    const bad: unknown[] = [
      undefined,
      null,
      [],
      {},
      answer([1]),
      { embeddings: [{}, { values: [1] }] },
      { embeddings: [{ values: [] }, { values: [1] }] },
      { embeddings: [{ values: ["1"] }, { values: [1] }] },
    ];
    for (const body of bad) expect(() => decodeEmbeddings([body], context())).toThrow(DecodeError);
    expect(() => decodeEmbeddings([], context())).toThrow(DecodeError);
    expect(decodeEmbeddings([{ embedding: { values: [1] } }], context({ counts: [1] })).data).toHaveLength(1);
  });
});
