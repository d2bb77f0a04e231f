// What requests for changes of the configuration and their answers have in common, as JSON Schema.

import { anything, constant, described, flag, mapOf, type Schema, shape, text, texts } from "./json-schema.ts";

/** The version of the configuration. */
export const version: Schema<number> = { type: "integer", minimum: 1 };

/** Members of the answer to a change. */
export const done = { success: constant(true), message: text };

/** Members of the answer to a dry run. */
export const dryRun = { dry_run: constant(true), estimated_impact: text };

export const fieldChanges = described(mapOf(shape({ from: anything, to: anything })), "By the path of the field.");

/** Of an answer to a dry run of a change of one entry. */
export const entryDryRun = { ...dryRun, changes: fieldChanges };

/** The version that a change is made for. */
export const madeFor = { version: described(version, "409 if it is no longer the current one.") };

/** Members of the answer to a change of backends. */
export const changed = { ...done, version, applied: flag, warnings: texts };
