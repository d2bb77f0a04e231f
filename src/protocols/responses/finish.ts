// How an answer ended: finish reasons here, a status with details there.

import type { Finish, FinishReason } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import { nonEmptyText, objectOf } from "../reading.ts";

export interface Ending {
  status: "completed" | "incomplete";
  incomplete_details: { reason: string } | null;
}

/** A paused turn is no reached limit: the client gets what there is, and goes on by sending it back. */
const INCOMPLETE: Partial<Record<FinishReason, string>> = {
  length: "max_output_tokens",
  "content-filter": "content_filter",
};

export function encodeFinish({ reason, raw }: Finish): Ending {
  const detail = INCOMPLETE[reason];
  if (detail === undefined) return { status: "completed", incomplete_details: null };
  const isOwn = raw?.protocol === "responses" && raw.value !== "incomplete";
  return { status: "incomplete", incomplete_details: { reason: isOwn ? raw.value : detail } };
}

/** For a status that is no failure; a missing one counts as completed. */
export function decodeFinish(response: JsonObject, hasClientCall: boolean): Finish {
  if (response.status !== "incomplete") {
    return { reason: hasClientCall ? "tool-calls" : "stop", raw: { protocol: "responses", value: "completed" } };
  }
  const detail = nonEmptyText(objectOf(response.incomplete_details).reason);
  const raw = { protocol: "responses", value: detail ?? "incomplete" } as const;
  return { reason: detail === "content_filter" ? "content-filter" : "length", raw };
}
