// The attributes of spans, by the OpenTelemetry conventions for generative AI as of version 1.41.0, the last one before they
// moved to a repository of their own; and the gateway's own, which begin with "signalbox.".

import type { Backend } from "../backends/backend.ts";
import type { Usage } from "../generation/usage.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { operationName } from "../metrics/request-metrics.ts";
import type { Attributes, AttributeValue } from "./data.ts";

export const SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0";

/** Clients choose the names of models; nobody reads longer ones. */
const MAX_TEXT_LENGTH = 256;
/** As in metrics. */
const MAX_ERROR_LENGTH = 64;
/** Most combinations that are kept for the next span; far more than a gateway has models on backends. */
const MAX_KEPT = 1_000;

type Given = readonly (readonly [name: string, value: AttributeValue | undefined])[];

function present(attributes: Given): Attributes {
  return attributes.filter(([, value]) => value !== undefined) as unknown as Attributes;
}

/** The provider that a backend stands for. */
export function providerOf({ kind }: Backend): string {
  return kind.provider ?? kind.name;
}

/** Where a backend is: its host and port, or the path of its socket. */
export function addressOf({ rootUrl, socketPath, kind }: Backend): Attributes {
  if (socketPath !== undefined) return [["server.address", socketPath]];
  const url = kind.isEmbedded === true ? null : URL.parse(rootUrl);
  if (url === null) return [];
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const address = url.hostname.replace(/^\[|\]$/g, "");
  return [
    ["server.address", address],
    ["server.port", port],
  ];
}

type Growing = [name: string, value: AttributeValue][];

/** Attributes that are made for each span: nothing is copied on the way. */
export function addUsage(to: Growing, { input, output }: Usage): void {
  to.push(["gen_ai.usage.input_tokens", input.total], ["gen_ai.usage.output_tokens", output.total]);
  add(to, "gen_ai.usage.cache_read.input_tokens", input.cacheRead);
  add(to, "gen_ai.usage.cache_creation.input_tokens", input.cacheWrite);
  add(to, "gen_ai.usage.reasoning.output_tokens", output.reasoning);
}

/** Nothing for what is not known. */
export function add(to: Growing, name: string, value: AttributeValue | undefined): void {
  if (value !== undefined) to.push([name, value]);
}

/** What every kind of span says of how it ended. */
export function addEnd(to: Growing, failure: string | undefined, finish: string | undefined): void {
  if (failure !== undefined) to.push(["error.type", failure.slice(0, MAX_ERROR_LENGTH)]);
  if (finish !== undefined) to.push(["gen_ai.response.finish_reasons", [finish.slice(0, MAX_TEXT_LENGTH)]]);
}

export function seconds(durationMs: number): AttributeValue {
  return { double: Math.round(durationMs * 1000) / 1e6 };
}

/** A span is named by what is done and with which model. */
function spanName(operation: string, model: string): string {
  const name = operationName(operation);
  return model === "" ? name : `${name} ${model.slice(0, MAX_TEXT_LENGTH)}`;
}

/** What spans have alike that were made of the same things: one of it for all of them, so that its bytes are made once. */
interface Alike {
  name: string;
  shared: Attributes;
}

export type SharedAttributes = ReturnType<typeof createSharedAttributes>;

export function createSharedAttributes() {
  const ofRequests = new Map<string, Alike>();
  const ofAttempts = new WeakMap<Backend, Map<string, Alike>>();

  return {
    request(
      asked: { operation: string; model: string; method: string; path: string; stream: boolean },
      answeredBy: string | undefined,
      backend: Backend | undefined,
    ): Alike {
      const { operation, model, method, path, stream } = asked;
      const key = `${operation}\n${model}\n${path}\n${stream}\n${answeredBy ?? ""}\n${backend?.name ?? ""}`;
      if (ofRequests.size >= MAX_KEPT) ofRequests.clear();
      return getOrMake(ofRequests, key, () => ({
        name: spanName(operation, model),
        shared: present([
          ["gen_ai.operation.name", operationName(operation)],
          ["gen_ai.provider.name", backend && providerOf(backend)],
          ["gen_ai.request.model", model.slice(0, MAX_TEXT_LENGTH) || undefined],
          ["gen_ai.response.model", answeredBy?.slice(0, MAX_TEXT_LENGTH)],
          ["gen_ai.request.stream", stream || undefined],
          ["http.request.method", method || undefined],
          ["url.path", path.slice(0, MAX_TEXT_LENGTH) || undefined],
          ["signalbox.backend", backend?.name],
        ]),
      }));
    },
    attempt(backend: Backend, operation: string, model: string, stream: boolean): Alike {
      const known = getOrMake(ofAttempts, backend, () => new Map<string, Alike>());
      if (known.size >= MAX_KEPT) known.clear();
      return getOrMake(known, `${operation}\n${model}\n${stream}`, () => ({
        name: spanName(operation, model),
        shared: [
          ...present([
            ["gen_ai.operation.name", operationName(operation)],
            ["gen_ai.provider.name", providerOf(backend)],
            ["gen_ai.request.model", model.slice(0, MAX_TEXT_LENGTH)],
            ["gen_ai.request.stream", stream || undefined],
            ["signalbox.backend", backend.name],
          ]),
          ...addressOf(backend),
        ],
      }));
    },
  };
}
