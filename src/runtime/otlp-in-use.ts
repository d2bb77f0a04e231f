// The export to a receiver of OpenTelemetry that the configuration asks for. Nothing of it is loaded before.

import type { Settings } from "../config/sections/registry.ts";
import type { Exporter, ExporterParts } from "../otlp/exporter.ts";
import type { SpansInUse } from "../pipeline/request-spans.ts";

type OtlpOwnerParts = Omit<ExporterParts, "settings"> & { settings: Settings };

/** For what is still to be sent to a receiver that the configuration does not name any more. */
const LAST_WORDS_MS = 2_000;

export function createOtlpOwner({ settings, ...parts }: OtlpOwnerParts) {
  let exporter: Exporter | undefined;
  const spans: SpansInUse = { recorder: undefined };

  function apply({ telemetry: { otlp } }: Settings): void {
    if (otlp.endpoint === undefined) {
      spans.recorder = undefined;
      void exporter?.stop(LAST_WORDS_MS);
      exporter = undefined;
      return;
    }
    if (exporter !== undefined) {
      exporter.apply(otlp);
      return;
    }
    const { createExporter } = require("../otlp/exporter.ts") as typeof import("../otlp/exporter.ts");
    exporter = createExporter({ ...parts, settings: otlp });
    spans.recorder = exporter.recorder;
  }

  apply(settings);
  return {
    spans,
    apply,
    /** Whether the receiver took what it was sent last; undefined while there is none. */
    isUp: (signal: Parameters<Exporter["isUp"]>[0]) => exporter?.isUp(signal),
    /** Sends what there is, for so long at most. */
    stop: async (withinMs: number) => exporter?.stop(withinMs),
  };
}
