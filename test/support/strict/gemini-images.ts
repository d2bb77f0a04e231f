// A strict backend of Gemini's image models: it refuses what the real one does not know, and gives what a test has
// written.

import { checkGenerateContentBody } from "./generate-content-rules.ts";
import { Ledger } from "./ledger.ts";
import type { JsonObject } from "./script.ts";
import { Refused } from "./shape.ts";

/** A picture of one pixel. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

export interface GeminiImageRequest {
  model: string;
  body: JsonObject;
}

export interface StrictGeminiImages {
  url: string;
  /** What was accepted. */
  requests: GeminiImageRequest[];
  /** Why others were refused. */
  refusals: string[];
  stop(): Promise<void>;
}

export interface GeminiImagesOptions {
  models?: readonly string[];
  /** What the n-th accepted request is answered with; left out: a picture and a text. */
  answer?(index: number, request: GeminiImageRequest): JsonObject | Response | Promise<JsonObject | Response>;
}

const PATH = /^\/v1beta\/models\/([^/:]+):generateContent$/;

export function startStrictGeminiImages(options: GeminiImagesOptions = {}): StrictGeminiImages {
  const models = options.models ?? ["gemini-2.5-flash-image", "gemini-3-pro-image"];
  const requests: GeminiImageRequest[] = [];
  const refusals: string[] = [];
  const refuse = (status: number, message: string): Response => {
    refusals.push(message);
    return Response.json({ error: { code: status, message, status: "INVALID_ARGUMENT" } }, { status });
  };

  async function answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (request.method === "GET") {
      // Health checks look elsewhere first.
      return pathname === "/v1beta/models" ? Response.json(listOf(models)) : new Response(null, { status: 404 });
    }
    const model = PATH.exec(pathname)?.[1];
    if (model === undefined || request.method !== "POST") return refuse(404, `${request.method} ${pathname}`);
    if (request.headers.get("x-goog-api-key") === null) return refuse(403, "unregistered caller");
    if (!models.includes(model)) return refuse(404, `models/${model} is not found`);
    const body = (await request.json()) as JsonObject;
    try {
      checkImageBody(body, model);
    } catch (error) {
      if (error instanceof Refused) return refuse(400, `${error.field}: ${error.message}`);
      throw error;
    }
    const asked = { model, body };
    requests.push(asked);
    const given = await (options.answer?.(requests.length - 1, asked) ?? drawn());
    return given instanceof Response ? given : Response.json(given);
  }

  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  return { url: `http://127.0.0.1:${server.port}`, requests, refusals, stop: () => server.stop(true) };
}

function checkImageBody(body: JsonObject, model: string): void {
  checkGenerateContentBody(body, model, new Ledger());
  const modalities = (body.generationConfig as JsonObject | undefined)?.responseModalities as string[] | undefined;
  if (modalities?.includes("IMAGE") !== true)
    throw new Refused("invalid", "generationConfig.responseModalities", "IMAGE was not asked for");
}

/** An answer with a picture, and what the model said of it. */
export function drawn(text = "Here it is.", data = PIXEL): JsonObject {
  return {
    candidates: [
      {
        content: { role: "model", parts: [{ text }, { inlineData: { mimeType: "image/png", data } }] },
        finishReason: "STOP",
        index: 0,
      },
    ],
    usageMetadata: {
      ...{ promptTokenCount: 6, candidatesTokenCount: 1295, totalTokenCount: 1301 },
      promptTokensDetails: [{ modality: "TEXT", tokenCount: 6 }],
      candidatesTokensDetails: [
        { modality: "TEXT", tokenCount: 5 },
        { modality: "IMAGE", tokenCount: 1290 },
      ],
    },
    modelVersion: "gemini-2.5-flash-image",
    responseId: "r1",
  };
}

function listOf(models: readonly string[]): JsonObject {
  return {
    models: models.map((id) => ({
      ...{ name: `models/${id}`, displayName: id, inputTokenLimit: 32_768, outputTokenLimit: 32_768 },
      supportedGenerationMethods: ["generateContent", "countTokens"],
    })),
  };
}
