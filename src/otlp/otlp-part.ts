// The export to a receiver of OpenTelemetry that the configuration asks for. Nothing of it is loaded before.

import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { SpansInUse } from "../pipeline/request-spans.ts";
import type { Exporter, ExporterParts } from "./exporter.ts";

/** For what is still to be sent to a receiver that the configuration does not name any more. */
const LAST_WORDS_MS = 2_000;

export function createOtlpPart(snapshot: ConfigSnapshot, parts: Omit<ExporterParts, "settings">) {
  let exporter: Exporter | undefined;
  const spans: SpansInUse = { recorder: undefined };

  function follow({ settings: { telemetry } }: Pick<ConfigSnapshot, "settings">): void {
    const { otlp } = telemetry;
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
    const { createExporter } = require("./exporter.ts") as typeof import("./exporter.ts");
    exporter = createExporter({ ...parts, settings: otlp });
    spans.recorder = exporter.recorder;
  }

  follow(snapshot);
  return {
    spans,
    follow,
    /** True if the receiver took the last request of this signal; undefined while there is no receiver. */
    isUp: (signal: Parameters<Exporter["isUp"]>[0]) => exporter?.isUp(signal),
    /** Sends what there is, for so long at most. */
    stop: async (withinMs: number) => exporter?.stop(withinMs),
  };
}
