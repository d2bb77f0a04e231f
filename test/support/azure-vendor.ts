// Azure's batches: those of OpenAI below another path, for deployments that answer nothing else.

import { OpenAiVendor } from "./vendor-server.ts";

/** What a single request is asked at. */
const DEPLOYMENT = /^\/openai\/deployments\/([^/]+)\/chat\/completions$/;

export class AzureVendor extends OpenAiVendor {
  protected override readonly batchEndpoint = "/chat/completions";
  protected override readonly lineUrls: readonly string[] = ["/v1/chat/completions", "/v1/responses"];
  /** Files that were looked at: a batch can be created of one when it is looked at again. */
  readonly #seen = new Set<string>();

  protected override isAllowed({ headers }: Request): boolean {
    return headers.get("api-key") === "vendor-key";
  }

  protected override async handle(request: Request, path: string): Promise<Response> {
    const deployment = DEPLOYMENT.exec(path)?.[1] ?? (path === "/openai/v1/chat/completions" ? "" : undefined);
    if (deployment !== undefined) {
      const { model } = (await request.clone().json()) as { model: string };
      if ((deployment || model).endsWith("-batch")) return this.mistake("a batch deployment is asked a single request");
      return await this.askedSingly(request);
    }
    if (!path.startsWith("/openai/v1/")) return this.refused(404, path);
    if (request.method === "GET" && /^\/openai\/v1\/files\/[^/]+$/.test(path)) {
      const status = this.#seen.has(path) ? "processed" : "running";
      this.#seen.add(path);
      return Response.json({ id: path.split("/").at(-1), object: "file", status });
    }
    return await super.handle(request, path.slice("/openai".length));
  }

  protected override checkModel(model: unknown): string | undefined {
    return String(model).endsWith("-batch") ? undefined : `${model} is no deployment for batches`;
  }

  /** As the documentation shows it for a batch that was just created. */
  protected override statusText(status: string): string {
    return `${status.charAt(0).toUpperCase()}${status.slice(1)}`;
  }

  protected override get fileStatus(): string {
    return "pending";
  }
}
