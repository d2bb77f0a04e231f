// Gemini's batches, as long-running operations that have their results in them, and contents generated one by one.

import { type VendorBatch, type VendorLine, VendorServer } from "./vendor-server.ts";

/** What becomes of a path: v1beta/models/MODEL:method, v1beta/batches, v1beta/batches/ID, v1beta/batches/ID:cancel. */
const PATH = /^\/v1beta\/(models|batches)(?:\/([^/:]+))?(?::(\w+))?$/;

/** google.rpc.Code, by the status of HTTP that a single request would get. */
const CODES: Readonly<Record<number, [code: number, status: string]>> = {
  400: [3, "INVALID_ARGUMENT"],
  404: [5, "NOT_FOUND"],
  429: [8, "RESOURCE_EXHAUSTED"],
  503: [14, "UNAVAILABLE"],
};

interface Created {
  batch?: {
    displayName?: unknown;
    inputConfig?: { requests?: { requests?: { request?: VendorLine["body"]; metadata?: { key?: unknown } }[] } };
  };
}

export class GeminiVendor extends VendorServer {
  /** Batches that a page of the list has at most. */
  pageSize = 100;
  /** Results do not say which requests they are of (googleapis/python-genai, issue 2008). */
  hidesKeys = false;
  readonly #facts = new Map<string, { model: string; displayName: string }>();

  protected async handle(request: Request, pathname: string): Promise<Response> {
    if (request.headers.get("x-goog-api-key") !== "vendor-key") return this.refused(401, "no key");
    const [, collection, id, method = ""] = PATH.exec(pathname) ?? [];
    switch (`${request.method} ${collection}${id === undefined ? "" : "/"}${method}`) {
      case "GET models":
        return this.#json({ models: [{ name: "models/gemini", supportedGenerationMethods: ["generateContent"] }] });
      case "POST models/generateContent":
        return await this.askedSingly(request);
      case "POST models/batchGenerateContent":
        return await this.#createBatch(request, id ?? "");
      case "GET batches":
        return this.#list(new URL(request.url).searchParams);
      case "GET batches/":
      case "POST batches/cancel":
      case "DELETE batches/": {
        const batch = this.find(`batches/${id}`);
        if (batch === undefined) return this.refused(404, "no such batch");
        if (request.method === "GET") return this.#json(this.#view(batch, true));
        if (method === "cancel") batch.isCancelled = true;
        else batch.isDeleted = true;
        return this.#json({});
      }
      default:
        return this.refused(404, pathname);
    }
  }

  protected answerTo({ contents }: Record<string, unknown>): Record<string, unknown> {
    const asked = (contents as { parts: { text: string }[] }[]).at(-1)?.parts[0]?.text;
    return {
      candidates: [
        { content: { role: "model", parts: [{ text: `answer to ${asked}` }] }, finishReason: "STOP", index: 0 },
      ],
      usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
      ...{ modelVersion: "gemini", responseId: "response-1" },
    };
  }

  protected refused(status: number, message: string): Response {
    return Response.json({ error: { code: status, message, status: CODES[status]?.[1] ?? "UNKNOWN" } }, { status });
  }

  resultsText(batch: VendorBatch): string {
    return JSON.stringify(this.#view(batch, false), null, 2);
  }

  /** Google indents. */
  #json(value: object): Response {
    return new Response(JSON.stringify(value, null, 2), { headers: { "content-type": "application/json" } });
  }

  async #createBatch(request: Request, model: string): Promise<Response> {
    const { batch, ...others } = (await request.json()) as Created;
    const { displayName, inputConfig, ...rest } = batch ?? {};
    const { requests, ...files } = inputConfig ?? {};
    const unknown = Object.keys({ ...others, ...rest, ...files })[0];
    if (unknown !== undefined) return this.mistake(`unknown name ${unknown}`);
    if (typeof displayName !== "string") return this.mistake("displayName is missing");
    const lines: VendorLine[] = [];
    for (const { request: body, metadata, ...more } of requests?.requests ?? []) {
      if (Object.keys(more).length > 0) return this.mistake("a request has other members");
      if (typeof metadata?.key !== "string") return this.mistake("a request has no key");
      if (!Array.isArray(body?.contents)) return this.mistake("a request has no contents");
      lines.push({ customId: metadata.key, body });
    }
    if (lines.length === 0) return this.mistake("no requests");
    const created = this.create(lines, "batches/vendor-", request.headers);
    this.#facts.set(created.id, { model, displayName });
    return this.#json(this.#view(created, false));
  }

  /** The newest first. */
  #list(query: URLSearchParams): Response {
    const all = this.batches.filter(({ isDeleted }) => !isDeleted).toReversed();
    const from = Number(query.get("pageToken") ?? 0);
    const end = from + Math.min(this.pageSize, Number(query.get("pageSize") ?? 50));
    return this.#json({
      operations: all.slice(from, end).map((batch) => this.#view(batch, true)),
      ...(end < all.length && { nextPageToken: String(end) }),
    });
  }

  #view(batch: VendorBatch, isLook: boolean) {
    const isOver = isLook ? this.isOver(batch) : this.hasEnded(batch);
    const facts = this.#facts.get(batch.id);
    const isDone = isOver || this.refusesToBegin;
    const state = this.refusesToBegin ? "FAILED" : batch.isCancelled ? "CANCELLED" : isOver ? "SUCCEEDED" : "RUNNING";
    const output = state === "SUCCEEDED" ? { inlinedResponses: { inlinedResponses: this.#results(batch) } } : undefined;
    const type = { "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch" };
    const metadata = {
      ...type,
      ...{ model: `models/${facts?.model}`, displayName: facts?.displayName, output },
      createTime: new Date(batch.createdMs ?? Date.now()).toISOString(),
      ...{ batchStats: { requestCount: String(batch.lines.length) }, state: `BATCH_STATE_${state}`, name: batch.id },
    };
    return {
      ...{ name: batch.id, metadata },
      ...(isDone && { done: true }),
      ...(this.refusesToBegin && { error: { code: 8, message: "quota" } }),
      ...(output !== undefined && { response: { ...type, ...output } }),
    };
  }

  /** In another order than that of the lines, one of them twice. */
  #results(batch: VendorBatch) {
    const all = batch.lines.toReversed().flatMap((line): Record<string, unknown>[] => {
      const told = this.outcome(line, batch);
      if (told === "expired") return [];
      const metadata = this.hidesKeys ? undefined : { key: line.customId };
      if (told.status === 200) return [{ response: told.body, metadata }];
      const { message } = told.body.error as { message: string };
      return [{ error: { code: CODES[told.status]?.[0] ?? 13, message }, metadata }];
    });
    return [...all, ...all.slice(0, 1)];
  }
}
