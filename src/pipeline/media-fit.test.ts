// Who may be asked for a request with media: what engines have said, what operators say, what lists say, in this order.

import { describe, expect, test } from "bun:test";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { documentSchema } from "../config/sections/registry.ts";
import type { Intake } from "../generation/intake.ts";
import { JsonBody } from "../lib/request-body.ts";
import { type AskedMedia, createMediaFit, createRefusedMedia } from "./media-fit.ts";

function entryOf(name: string, listed?: Intake, capabilities?: string[]): BackendEntry {
  const configured = capabilities && [{ id: "m", metadata: { capabilities } }];
  const document = { backends: [{ name, url: "http://h", ...(configured && { model_configs: configured }) }] };
  const [settings] = documentSchema.parse(document).backends;
  const offer = { intakes: new Map(listed === undefined ? [] : [["m", listed]]) };
  return { backend: toBackend(settings!), health: "ready", available: true, offer, counters: newCounters() };
}

function asked(...types: string[]): AskedMedia {
  const value = { messages: [{ role: "user", content: types.map((type) => ({ type })) }] };
  return { model: "m", body: JsonBody.written(value) };
}

function bench(known?: string[]) {
  let nowMs = 0;
  const refusedMedia = createRefusedMedia(() => nowMs);
  const metadata = known && { capabilities: known };
  const fit = createMediaFit({
    refusedMedia,
    metadataOf: () => metadata as never,
    configuredOf: ({ settings }, model) => settings.model_configs.find(({ id }) => id === model)?.metadata,
  });
  const everyone = () => true;
  return {
    fit,
    refusedMedia,
    wait: (durationMs: number) => {
      nowMs += durationMs;
    },
    names: (
      entries: readonly BackendEntry[],
      request: AskedMedia,
      mayAsk: (entry: BackendEntry) => boolean = everyone,
    ) => fit.fitting(entries, request, mayAsk).map(({ backend }) => backend.name),
  };
}

const blind = entryOf("blind", { image: false });
const seeing = entryOf("seeing", { image: true });
const silent = entryOf("silent");
const ALL = [blind, seeing, silent];

describe("who may be asked", () => {
  test("for text: all, and it is the same array", () => {
    expect(bench().fit.fitting(ALL, asked("text"), () => true)).toBe(ALL);
    expect(bench().fit.fitting(ALL, { model: "m" }, () => true)).toBe(ALL);
  });

  test("for a picture: who takes it; where that one may not be asked, who may take it", () => {
    const { names } = bench();
    expect(names(ALL, asked("image_url"))).toEqual(["seeing"]);
    expect(names(ALL, asked("image_url"), ({ backend }) => backend.name !== "seeing")).toEqual(["seeing", "silent"]);
    expect(names([blind, silent], asked("image_url"))).toEqual(["silent"]);
    expect(names([blind], asked("image_url"))).toEqual([]);
  });

  test("for a medium of which nobody says anything: all", () => {
    expect(bench().fit.fitting(ALL, asked("input_audio"), () => true)).toBe(ALL);
  });

  test("equal choices are one array, because turns are kept by it", () => {
    const { fit } = bench();
    const choose = () => fit.fitting(ALL, asked("image_url"), () => true);
    expect(choose()).toBe(choose());
  });
});

describe("what is known", () => {
  test("an operator's word counts more than a list", () => {
    const { fit } = bench();
    expect(fit.takes(entryOf("a", { image: false }, ["chat", "vision"]), "m", "image")).toBe(true);
    expect(fit.takes(entryOf("b", { image: true }, ["chat"]), "m", "image")).toBe(false);
  });

  test("what is known of the model elsewhere says only what it takes", () => {
    expect(bench(["chat", "vision"]).fit.takes(silent, "m", "image")).toBe(true);
    expect(bench(["chat"]).fit.takes(silent, "m", "image")).toBeUndefined();
  });

  test("an engine's words count most, for a while, and of this model and medium alone", () => {
    const { fit, wait } = bench();
    fit.refused(seeing, asked("image_url", "input_audio"), "image");
    expect(fit.takes(seeing, "m", "image")).toBe(false);
    expect(fit.takes(seeing, "m", "audio")).toBeUndefined();
    expect(fit.takes(seeing, "n", "image")).toBeUndefined();
    wait(10 * 60_000 + 1);
    expect(fit.takes(seeing, "m", "image")).toBe(true);
  });

  test("they are forgotten when the backend offers something else", () => {
    const { fit } = bench();
    fit.refused(silent, asked("image_url"), "image");
    expect(fit.takes(silent, "m", "image")).toBe(false);
    expect(fit.takes({ ...silent, offer: { intakes: new Map() } }, "m", "image")).toBeUndefined();
  });

  test("words about what was not sent say nothing", () => {
    const { fit, refusedMedia } = bench();
    fit.refused(silent, asked("text"), "image");
    fit.refused(silent, asked("text"), "media");
    expect(refusedMedia.size).toBe(0);
    fit.refused(silent, asked("input_audio"), "media");
    expect(fit.takes(silent, "m", "audio")).toBe(false);
  });

  test("the memory is bounded", () => {
    const { fit, refusedMedia } = bench();
    for (let index = 0; index < 5_000; index++) {
      fit.refused(silent, { ...asked("image_url"), model: `m${index}` }, "image");
    }
    expect(refusedMedia.size).toBeLessThanOrEqual(2_000);
  });
});

describe("a refusal", () => {
  test("when no backend of the model takes it", () => {
    const { fit } = bench();
    expect(fit.refusal([blind], asked("image_url"))).toMatchObject({ status: 400, code: "unsupported_content" });
    expect(fit.refusal([blind, silent], asked("image_url"))).toBeUndefined();
    expect(fit.refusal([blind], asked("text"))).toBeUndefined();
    expect(fit.refusal([], asked("image_url"))).toBeUndefined();
  });
});
