// Recordings as tests meet them: a configuration that records, requests, and what was kept of them.

import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { AdminClient } from "./admin-client.ts";
import type { Gateway } from "./gateway.ts";
import { waitFor } from "./wait-for.ts";

export type Recording = Record<string, unknown> & {
  id: string;
  outcome: string;
  request: { text: string | null; incomplete: string | null; bytes: number };
  answer: { text: string | null; incomplete: string | null; bytes: number };
  conversation: {
    messages: { role: string; parts: Record<string, string>[] }[];
    answer: { parts: Record<string, string>[]; finish: string | null; error: string | null } | null;
  } | null;
};

export function recordingConfig(backend: { url: string }, recording: ConfigDocument["recording"] = {}): ConfigDocument {
  return {
    backends: [{ name: "engine", type: "vllm", url: backend.url, models: ["m"] }],
    health_checks: { enabled: false },
    retry: { max_attempts: 1 },
    api_keys: {
      mode: "permissive",
      keys: [
        { id: "ann", key: "ann-sekret", user_id: "ann" },
        { id: "bob", key: "bob-sekret", user_id: "bob" },
      ],
    },
    recording: { enabled: true, ...recording },
  };
}

export async function ask(
  gateway: Gateway,
  content: string,
  more: Record<string, unknown> = {},
  key?: string,
  headers = {},
) {
  return await gateway.fetch("/v1/chat/completions", {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(key !== undefined && { Authorization: `Bearer ${key}` }),
      ...headers,
    },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content }], ...more }),
  });
}

export const ownIdOf = (response: Response) => response.headers.get("x-signalbox-request-id") as string;

/** The recording of a request, once it is kept. */
export async function recordingOf(admin: AdminClient, id: string): Promise<Recording> {
  await waitFor(`recording ${id}`, async () => (await admin.send("GET", `/admin/recordings/${id}`)).status === 200);
  return (await admin.get(`/admin/recordings/${id}`)) as Recording;
}

export async function found(admin: AdminClient, query: string): Promise<string[]> {
  const { recordings } = await admin.get(`/admin/recordings?${query}`);
  return (recordings as Recording[]).map(({ id }) => id);
}
