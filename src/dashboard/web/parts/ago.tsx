// How long ago something was; the text follows the clock by itself.

import { useNow } from "../app/hooks.ts";
import { ago, dateTime } from "../format.ts";

/** @param at - milliseconds, or as the gateway writes times */
export function Ago({ at }: { at: number | string }) {
  const atMs = typeof at === "number" ? at : Date.parse(at);
  return <span title={dateTime(atMs)}>{ago(atMs, useNow())}</span>;
}
