// Vendors with a batch API, as strict as theirs: what they are sent is checked, and how they go about it is up to the test.

import type { Server } from "bun";

/** What a line comes to: an answer, an error of the API, or none because the batch has expired. */
export type LineOutcome = { status: number; body: Record<string, unknown> } | "expired";

export interface VendorLine {
  customId: string;
  body: Record<string, unknown>;
}

export interface VendorBatch {
  id: string;
  lines: VendorLine[];
  isCancelled: boolean;
  isDeleted: boolean;
  headers: Headers;
  /** Undefined: now. */
  createdMs?: number;
}

export abstract class VendorServer {
  readonly batches: VendorBatch[] = [];
  /** Single requests. */
  readonly requests: Record<string, unknown>[] = [];
  /** Looks at batches that were created. */
  looks = 0;
  /** Batches fail before they begin. */
  refusesToBegin = false;
  /** What was against the rules of the API. */
  readonly mistakes: string[] = [];
  /** Batches are over when they are looked at so often. */
  looksUntilOver = 1;
  outcome: (line: VendorLine, batch: VendorBatch) => LineOutcome = (line) => ({
    status: 200,
    body: this.answerTo(line.body),
  });
  single: (body: Record<string, unknown>) => { status: number; body: Record<string, unknown> } = (body) => ({
    status: 200,
    body: this.answerTo(body),
  });
  /** An answer in place of the usual one, when what was asked is done; undefined: the usual one. */
  after: (asked: string) => Response | Promise<Response> | undefined = () => undefined;
  /** The same, and nothing is done. */
  instead: (asked: string) => Response | undefined = () => undefined;
  #created = 0;
  readonly #looksAt = new Map<string, number>();
  readonly #server: Server<undefined>;

  constructor() {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      fetch: (request) => this.#answer(request),
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  stop(): Promise<void> {
    return this.#server.stop(true);
  }

  /** The file of results, as the vendor gives it. */
  abstract resultsText(batch: VendorBatch): string;
  protected abstract handle(request: Request, path: string): Promise<Response>;
  protected abstract answerTo(body: Record<string, unknown>): Record<string, unknown>;
  protected abstract refused(status: number, message: string): Response;

  protected async askedSingly(request: Request): Promise<Response> {
    const asked = (await request.json()) as Record<string, unknown>;
    this.requests.push(asked);
    const { status, body } = this.single(asked);
    return Response.json(body, { status });
  }

  protected create(lines: VendorLine[], prefix: string, headers: Headers): VendorBatch {
    const id = `${prefix}${++this.#created}`;
    const batch = { id, lines, isCancelled: false, isDeleted: false, headers };
    this.batches.push(batch);
    return batch;
  }

  protected find(id: string | undefined): VendorBatch | undefined {
    return this.batches.find((batch) => batch.id === id && !batch.isDeleted);
  }

  /** Notes a look. */
  protected isOver(batch: VendorBatch): boolean {
    this.looks++;
    const looks = (this.#looksAt.get(batch.id) ?? 0) + 1;
    this.#looksAt.set(batch.id, looks);
    return batch.isCancelled || looks > this.looksUntilOver;
  }

  protected hasEnded({ id, isCancelled }: VendorBatch): boolean {
    return isCancelled || (this.#looksAt.get(id) ?? 0) > this.looksUntilOver;
  }

  protected mistake(message: string): Response {
    this.mistakes.push(message);
    return this.refused(400, message);
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const asked = `${request.method} ${pathname}`;
    const instead = this.instead(asked);
    if (instead !== undefined) return instead;
    const response = await this.handle(request, pathname);
    return (await this.after(asked)) ?? response;
  }
}

/** OpenAI's: files, batches of them, and chat completions, embeddings and responses one by one. */
export class OpenAiVendor extends VendorServer {
  readonly files = new Map<string, string>();
  #uploads = 0;
  readonly #results = new Map<string, { output?: string; errors?: string }>();
  readonly #facts = new Map<string, { input: string; endpoint: string; metadata: unknown }>();
  /** The endpoint of all batches; undefined: that of their lines. */
  protected readonly batchEndpoint: string | undefined = undefined;
  /** The urls of lines; undefined: the endpoint of their batch. */
  protected readonly lineUrls: readonly string[] | undefined = undefined;

  protected get fileStatus(): string {
    return "processed";
  }

  protected isAllowed({ headers }: Request): boolean {
    return headers.get("authorization") === "Bearer vendor-key";
  }

  /** What is wrong with the model of all lines. */
  protected checkModel(_model: unknown): string | undefined {
    return undefined;
  }

  protected statusText(status: string): string {
    return status;
  }

  resultsText(batch: VendorBatch): string {
    return this.files.get(this.#resultsOf(batch).output ?? "") ?? "";
  }

  protected async handle(request: Request, path: string): Promise<Response> {
    if (!this.isAllowed(request)) return this.refused(401, "no key");
    const [, , collection, id, action] = path.split("/");
    const asked = `${request.method} ${collection}${id === undefined ? "" : "/"}${action ?? ""}`;
    switch (asked) {
      case "GET models":
        return Response.json({
          object: "list",
          data: [{ id: "gpt", object: "model", created: 0, owned_by: "openai" }],
        });
      case "POST files":
        return await this.#upload(request);
      case "GET files/content": {
        const content = this.files.get(id ?? "");
        return content === undefined ? this.refused(404, "no such file") : new Response(content);
      }
      case "DELETE files/":
        return this.files.delete(id ?? "")
          ? Response.json({ id, object: "file", deleted: true })
          : this.refused(404, "no such file");
      case "POST batches":
        return await this.#createBatch(request);
      case "GET batches":
        return this.#list(new URL(request.url).searchParams);
      case "GET batches/":
      case "POST batches/cancel": {
        const batch = this.find(id);
        if (batch === undefined) return this.refused(404, "no such batch");
        if (action === "cancel") batch.isCancelled = true;
        return Response.json(this.#view(batch, true));
      }
      default:
        return request.method === "POST" && collection !== undefined
          ? await this.askedSingly(request)
          : this.refused(404, path);
    }
  }

  protected answerTo({ model, messages, input }: Record<string, unknown>): Record<string, unknown> {
    if (input !== undefined) {
      const data = [{ object: "embedding", index: 0, embedding: [0.5, 0.25] }];
      return { object: "list", model, data, usage: { prompt_tokens: 100, total_tokens: 100 } };
    }
    const content = (messages as { content: string }[]).at(-1)?.content;
    return {
      ...{ id: "chatcmpl-1", object: "chat.completion", created: 1, model },
      choices: [{ index: 0, message: { role: "assistant", content: `answer to ${content}` }, finish_reason: "stop" }],
      usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
    };
  }

  protected refused(status: number, message: string): Response {
    return Response.json({ error: { message, type: "invalid_request_error", param: null, code: null } }, { status });
  }

  async #upload(request: Request): Promise<Response> {
    const form = await request.formData();
    const file = form.get("file");
    if (form.get("purpose") !== "batch") return this.mistake("purpose is not batch");
    if (!(file instanceof File) || !file.name.endsWith(".jsonl")) return this.mistake("file is not a .jsonl file");
    const id = `file-${++this.#uploads}`;
    this.files.set(id, await file.text());
    return Response.json({
      id,
      object: "file",
      bytes: file.size,
      created_at: 1,
      filename: file.name,
      purpose: "batch",
      status: this.fileStatus,
    });
  }

  async #createBatch(request: Request): Promise<Response> {
    const { input_file_id, endpoint, completion_window, metadata, ...others } = (await request.json()) as Record<
      string,
      string
    >;
    const [other] = Object.keys(others);
    if (other !== undefined) return this.mistake(`unknown parameter ${other}`);
    if (completion_window !== "24h") return this.mistake("completion_window");
    if (this.batchEndpoint !== undefined && endpoint !== this.batchEndpoint) return this.mistake("endpoint");
    const content = this.files.get(input_file_id ?? "");
    if (content === undefined) return this.mistake("there is no such input file");
    const lines: VendorLine[] = [];
    for (const text of content.trimEnd().split("\n")) {
      const { custom_id, method, url, body, ...rest } = JSON.parse(text);
      if (Object.keys(rest).length > 0) return this.mistake("a line has other members");
      const isForEndpoint = this.lineUrls?.includes(url) ?? url === endpoint;
      if (method !== "POST" || !isForEndpoint) return this.mistake("a line is not POST, or for another endpoint");
      if (typeof custom_id !== "string" || custom_id.length > 512) return this.mistake("custom_id");
      if (body.stream === true) return this.mistake("a line streams");
      lines.push({ customId: custom_id, body });
    }
    if (new Set(lines.map(({ customId }) => customId)).size < lines.length)
      return this.mistake("a custom_id stands twice");
    if (new Set(lines.map(({ body }) => body.model)).size > 1) return this.mistake("several models in one batch");
    const fault = this.checkModel(lines[0]?.body.model);
    if (fault !== undefined) return this.mistake(fault);
    const batch = this.create(lines, "batch_vendor_", request.headers);
    this.#facts.set(batch.id, { input: input_file_id ?? "", endpoint: endpoint ?? "", metadata });
    return Response.json(this.#view(batch, false));
  }

  #list(query: URLSearchParams): Response {
    const newest = this.batches.toReversed();
    const from = query.has("after") ? newest.findIndex(({ id }) => id === query.get("after")) + 1 : 0;
    const limit = Number(query.get("limit") ?? 20);
    const page = newest.slice(from, from + limit).map((batch) => this.#view(batch, true));
    return Response.json({
      ...{ object: "list", data: page, has_more: from + limit < newest.length },
      ...{ first_id: page[0]?.id ?? null, last_id: page.at(-1)?.id ?? null },
    });
  }

  #view(batch: VendorBatch, isLook: boolean) {
    const isOver = isLook ? this.isOver(batch) : this.hasEnded(batch);
    const { input, endpoint, metadata } = this.#facts.get(batch.id) as {
      input: string;
      endpoint: string;
      metadata: unknown;
    };
    const results = isOver ? this.#resultsOf(batch) : {};
    return {
      ...{ id: batch.id, object: "batch", endpoint, input_file_id: input, completion_window: "24h", metadata },
      ...(this.refusesToBegin && {
        errors: { object: "list", data: [{ code: "token_limit_exceeded", message: "later" }] },
      }),
      status: this.statusText(
        this.refusesToBegin ? "failed" : batch.isCancelled ? "cancelled" : isOver ? "completed" : "in_progress",
      ),
      created_at: Math.floor(Date.now() / 1000),
      output_file_id: results.output,
      error_file_id: results.errors,
    };
  }

  /** Written once, in another order than that of the lines. */
  #resultsOf(batch: VendorBatch) {
    const known = this.#results.get(batch.id);
    if (known !== undefined) return known;
    const [output, errors]: [string[], string[]] = [[], []];
    for (const line of batch.lines.toReversed()) {
      const told = batch.isCancelled ? "expired" : this.outcome(line, batch);
      const id = `batch_req_${line.customId}`;
      if (told === "expired") {
        const error = { code: "batch_expired", message: "This request could not be executed." };
        errors.push(JSON.stringify({ id, custom_id: line.customId, response: null, error }));
        continue;
      }
      const response = { status_code: told.status, request_id: "req_1", body: told.body };
      const text = JSON.stringify({ id, custom_id: line.customId, response, error: null });
      (told.status === 200 ? output : errors).push(text);
    }
    const written: { output?: string; errors?: string } = {};
    if (output.length > 0) written.output = `file-output-${batch.id}`;
    if (errors.length > 0) written.errors = `file-errors-${batch.id}`;
    // A line that comes twice counts once.
    if (written.output !== undefined) this.files.set(written.output, `${[...output, output[0]].join("\n")}\n`);
    if (written.errors !== undefined) this.files.set(written.errors, `${errors.join("\n")}\n`);
    this.#results.set(batch.id, written);
    return written;
  }
}

/** Anthropic's: message batches, and messages one by one. */
export class AnthropicVendor extends VendorServer {
  protected async handle(request: Request, path: string): Promise<Response> {
    if (request.headers.get("x-api-key") !== "vendor-key") return this.refused(401, "no key");
    if (request.headers.get("anthropic-version") === null) return this.mistake("anthropic-version is missing");
    if (path === "/v1/models") return Response.json({ data: [{ type: "model", id: "claude" }], has_more: false });
    if (path === "/v1/messages") return await this.askedSingly(request);
    const [, , , collection, id, action] = path.split("/");
    if (collection !== "batches") return this.refused(404, path);
    if (id === undefined && request.method === "POST") return await this.#createBatch(request);
    if (id === undefined) {
      const data = this.batches
        .filter(({ isDeleted }) => !isDeleted)
        .toReversed()
        .map((batch) => this.#view(batch, true));
      return Response.json({ data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null });
    }
    const batch = this.find(id);
    if (batch === undefined) return this.refused(404, "no such batch");
    if (action === "results") {
      return this.hasEnded(batch)
        ? new Response(this.resultsText(batch))
        : this.refused(400, "the batch has not ended");
    }
    if (action === "cancel") batch.isCancelled = true;
    if (request.method === "DELETE") {
      if (!this.hasEnded(batch)) return this.mistake("a batch is deleted before it has ended");
      batch.isDeleted = true;
      return Response.json({ id, type: "message_batch_deleted" });
    }
    return Response.json(this.#view(batch, action === undefined));
  }

  protected answerTo({ model, messages }: Record<string, unknown>): Record<string, unknown> {
    const { content } = (messages as { content: unknown }[]).at(-1) as { content: unknown };
    const asked = typeof content === "string" ? content : (content as { text: string }[])[0]?.text;
    return {
      ...{ id: "msg_1", type: "message", role: "assistant", model, stop_reason: "end_turn", stop_sequence: null },
      content: [{ type: "text", text: `answer to ${asked}` }],
      usage: { input_tokens: 100, output_tokens: 10 },
    };
  }

  protected refused(status: number, message: string): Response {
    const type = status === 404 ? "not_found_error" : "invalid_request_error";
    return Response.json({ type: "error", error: { type, message }, request_id: "req_1" }, { status });
  }

  async #createBatch(request: Request): Promise<Response> {
    const { requests, ...others } = (await request.json()) as {
      requests: { custom_id: string; params: VendorLine["body"] }[];
    };
    if (Object.keys(others).length > 0) return this.mistake("the body has other members");
    const lines: VendorLine[] = [];
    for (const { custom_id, params, ...rest } of requests) {
      if (Object.keys(rest).length > 0) return this.mistake("a request has other members");
      if (!/^[A-Za-z0-9_-]{1,64}$/.test(custom_id)) return this.mistake("custom_id");
      if (params.stream === true) return this.mistake("a request streams");
      if (typeof params.max_tokens !== "number") return this.mistake("max_tokens is missing");
      lines.push({ customId: custom_id, body: params });
    }
    if (new Set(lines.map(({ customId }) => customId)).size < lines.length)
      return this.mistake("a custom_id stands twice");
    return Response.json(this.#view(this.create(lines, "msgbatch_vendor_", request.headers), false));
  }

  #view(batch: VendorBatch, isLook: boolean) {
    const isOver = isLook ? this.isOver(batch) : this.hasEnded(batch);
    const counts = { processing: isOver ? 0 : batch.lines.length, succeeded: isOver ? batch.lines.length : 0 };
    return {
      ...{ id: batch.id, type: "message_batch", archived_at: null, cancel_initiated_at: null },
      ...{ created_at: new Date().toISOString(), ended_at: isOver ? new Date().toISOString() : null },
      ...{
        expires_at: new Date(Date.now() + 86_400_000).toISOString(),
        processing_status: isOver ? "ended" : "in_progress",
      },
      request_counts: { ...counts, canceled: 0, errored: 0, expired: 0 },
      results_url: isOver ? `https://elsewhere.invalid/v1/messages/batches/${batch.id}/results` : null,
    };
  }

  resultsText(batch: VendorBatch): string {
    const lines = batch.lines.toReversed().map((line) => {
      const told = batch.isCancelled ? "expired" : this.outcome(line, batch);
      const result =
        told === "expired"
          ? { type: batch.isCancelled ? "canceled" : "expired" }
          : told.status === 200
            ? { type: "succeeded", message: told.body }
            : { type: "errored", error: told.body };
      return JSON.stringify({ custom_id: line.customId, result });
    });
    return `${lines.join("\n")}\n`;
  }
}
