// The Files API as tests use it: uploads, the list, and what lies in the data folder.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Gateway } from "./gateway.ts";
import { BOUNDARY, type FormPart, formOf } from "./multipart-forms.ts";
import { waitFor } from "./wait-for.ts";

export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

export interface FileObject {
  id: string;
  object: "file";
  bytes: number;
  created_at: number;
  expires_at?: number;
  filename: string;
  purpose: string;
  status: string;
}

export function filePart(content: string | Uint8Array, more: Partial<FormPart> = {}): FormPart {
  return { name: "file", filename: "notes.txt", contentType: "text/plain", content, ...more };
}

export const PURPOSE: FormPart = { name: "purpose", content: "user_data" };

/** POST of a form to the path; with headers, such as a key. */
export function sendForm(
  gateway: Gateway,
  parts: readonly FormPart[],
  { path = "/v1/files", headers = {} }: { path?: string; headers?: Record<string, string> } = {},
): Promise<Response> {
  return gateway.fetch(path, {
    method: "POST",
    headers: { "Content-Type": FORM_TYPE, ...headers },
    body: formOf(parts),
  });
}

/** A file that must be taken. */
export async function uploadFile(
  gateway: Gateway,
  content: string | Uint8Array,
  { headers = {}, ...part }: Partial<FormPart> & { headers?: Record<string, string> } = {},
): Promise<FileObject> {
  const response = await sendForm(gateway, [PURPOSE, filePart(content, part)], { headers });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`the upload was answered ${response.status}: ${text}`);
  return JSON.parse(text) as FileObject;
}

export async function listedIds(gateway: Gateway, headers: Record<string, string> = {}): Promise<string[]> {
  const response = await gateway.fetch("/v1/files", { headers });
  const { data } = (await response.json()) as { data: FileObject[] };
  return data.map(({ id }) => id);
}

/** Ids of the contents on the disk, uploads under way included. */
export function idsOnDisk(gateway: Gateway): string[] {
  const names = readdirSync(join(gateway.folder, "data", "files"), { recursive: true, withFileTypes: true });
  return names.filter((entry) => entry.isFile() && /^file-/.test(entry.name)).map(({ name }) => name);
}

/** Nothing is left but what is listed. */
export async function waitUntilClean(gateway: Gateway, headers: Record<string, string> = {}): Promise<void> {
  let facts = "";
  await waitFor(
    "the disk has what is listed, and no more",
    async () => {
      const listed = (await listedIds(gateway, headers)).sort();
      const kept = idsOnDisk(gateway).sort();
      facts = JSON.stringify({ listed, kept });
      return Bun.deepEquals(listed, kept);
    },
    { explain: () => facts },
  );
}
