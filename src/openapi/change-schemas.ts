// What requests for changes of the configuration and their answers have in common, as JSON Schema.

import { described, flag, type Properties, text, texts } from "./json-schema.ts";

/** Of the configuration. */
export const version = { type: "integer", minimum: 1 };

/** Of what has been done, in words. */
export const done: Properties = { success: { const: true }, message: text };

/** Of an answer to a dry run. */
export const dryRun: Properties = { dry_run: { const: true }, estimated_impact: text };

/** The version that a change is made for. */
export const madeFor = { version: described(version, "409 if it is no longer the current one.") } satisfies Properties;

/** Of an answer to a change of backends. */
export const changed: Properties = { ...done, version, applied: flag, warnings: texts };
