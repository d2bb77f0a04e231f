// signalbox replay: starts a replay at a running gateway, waits for its end, and prints both sides.

import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { isObject, type JsonObject, parseObject } from "../lib/json.ts";
import { keepLoopbackFromProxies } from "../lib/proxy-environment.ts";
import { SERVICE_NAME } from "../names.ts";
import type { ReplayCommand } from "./arguments.ts";
import { parseReplayFilter } from "./replay-filter.ts";

const LOOK_MS = 500;
const MOST_SHOWN = 60;

/** Returns the exit code: 0 where every request was asked and answered. */
export async function replay(command: ReplayCommand, env: Record<string, string | undefined>): Promise<number> {
  const recordings = parseReplayFilter(command.filter);
  if ("error" in recordings) return fail(recordings.error as string);
  keepLoopbackFromProxies(env as Record<string, string>);
  try {
    const { judge, rubric, asked, url } = command;
    const judged =
      judge === undefined ? {} : { judge: { model: judge, rubric: readFileSync(rubric as string, "utf8") } };
    const { id } = await askAdmin(url, env, "POST", "/admin/replays", { recordings, ...asked, ...judged });
    const read = (query: string) => askAdmin(url, env, "GET", `/admin/replays/${id}${query}`);
    do await pause(LOOK_MS);
    while ((await read("?limit=1")).status === "running");
    const told = await allPages(read);
    process.stdout.write(command.asJson ? `${JSON.stringify(told)}\n` : table(told));
    const { failed = 0 } = isObject(told.replayed) ? (told.replayed as { failed?: number }) : {};
    return told.status === "completed" && failed === 0 && told.done === told.total ? 0 : 1;
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

/** The replay with all of its requests. */
async function allPages(read: (query: string) => Promise<JsonObject>): Promise<JsonObject> {
  const first = await read("");
  const items = [...(first.items as unknown[])];
  for (let cursor = first.next_cursor; typeof cursor === "string"; ) {
    const page = await read(`?cursor=${cursor}`);
    items.push(...(page.items as unknown[]));
    cursor = page.next_cursor;
  }
  return { ...first, items, next_cursor: null };
}

async function askAdmin(
  url: string,
  env: Record<string, string | undefined>,
  method: string,
  path: string,
  body?: JsonObject,
): Promise<JsonObject> {
  const token = env.SIGNALBOX_ADMIN_TOKEN;
  const response = await fetch(new URL(path, url), {
    method,
    headers: {
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer = parseObject(await response.text());
  if (response.ok && answer !== undefined) return answer;
  const { error } = (answer ?? {}) as { error?: { message?: string; details?: { validation_errors?: ToldProblem[] } } };
  const problems = (error?.details?.validation_errors ?? []).map((problem) => `${problem.field}: ${problem.error}`);
  throw new Error([error?.message ?? `${url} answered ${response.status}`, ...problems].join("\n"));
}

interface ToldProblem {
  field: string;
  error: string;
}

function table(told: JsonObject): string {
  const { items = [], currency = "" } = told as { items?: ShownItem[]; currency?: string };
  const sides = ["recorded", "replayed"] as const;
  const sums = sides.map((side) => {
    const { input_tokens, output_tokens, cost, first_byte_ms, failed } = told[side] as Record<string, number | null>;
    const first = first_byte_ms === null ? "-" : `${Math.round(first_byte_ms as number)} ms`;
    return `${side}: ${input_tokens} tokens in, ${output_tokens} out, ${cost} ${currency}, first token ${first}, ${failed} failed`;
  });
  const { identical, different, better, worse, same } = told as Record<string, number>;
  return [
    `${told.id} ${told.status}: ${told.done} of ${told.total}`,
    ...sums,
    `identical ${identical}, different ${different}; judged better ${better}, worse ${worse}, same ${same}`,
    ...items.flatMap((item) => ["", titleOf(item), ...sides.map((side) => `  ${side}: ${shown(item[side], item)}`)]),
    "",
  ].join("\n");
}

function titleOf({ recording, asked_again }: ShownItem): string {
  return asked_again ? `${recording} (asked again after a restart)` : recording;
}

interface ShownItem {
  recording: string;
  asked_again: boolean;
  reason: string | null;
  recorded: ItemAnswer | null;
  replayed: ItemAnswer | null;
}

interface ItemAnswer {
  text: string;
  error: string | null;
  tool_calls: readonly { name: string }[];
}

function shown(told: ItemAnswer | null, { reason }: ShownItem): string {
  if (told === null) return reason ?? "not asked";
  const calls = told.tool_calls.map(({ name }) => `[${name}]`);
  const line = [told.error ?? told.text, ...calls].join(" ").replaceAll(/\s+/g, " ");
  return line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN)}…` : line;
}

function fail(message: string): number {
  process.stderr.write(`${SERVICE_NAME}: ${message}\n`);
  return 1;
}
