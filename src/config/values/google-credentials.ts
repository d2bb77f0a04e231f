// Google credentials as a setting: their JSON, beside the paths of files that hold it.

import { parseObject } from "../../lib/json.ts";

/** True for a text that is the JSON itself, whole or not; any other text names a file. */
export function isGoogleJson(text: string): boolean {
  return text.trimStart().startsWith("{");
}

/** Those that hold their secret themselves; others name files, commands and addresses of this machine. */
const SELF_CONTAINED: ReadonlySet<unknown> = new Set(["service_account", "authorized_user"]);

/** Whether they may come in by the admin API: nothing of this machine is read for them. */
export function isSelfContained(text: string): boolean {
  return isGoogleJson(text) && SELF_CONTAINED.has(parseObject(text)?.type);
}
