// Nobody ever sees a file of somebody else, nor that there is one: owners of every kind, both shapes, every route.

import { beforeAll, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { type FileObject, filePart, listedIds, PURPOSE, sendForm, uploadFile } from "../support/stored-files.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
let gateway: Gateway;

/** Every kind of owner; equal names on purpose, and two keys that are one owner. */
const KEYS = [
  { key: "sekret-org-one", id: "a", organization_id: "same", user_id: "u1" },
  { key: "sekret-org-one-again", id: "b", organization_id: "same" },
  { key: "sekret-org-two", id: "c", organization_id: "other", user_id: "u1" },
  { key: "sekret-user", id: "d", user_id: "same" },
  { key: "sekret-key", id: "same" },
  { key: "sekret-key-anonymous", id: "anonymous" },
];

const OWNERS: Record<string, Record<string, string>> = {
  organization: { Authorization: "Bearer sekret-org-one" },
  "another organization": { Authorization: "Bearer sekret-org-two" },
  user: { Authorization: "Bearer sekret-user" },
  key: { Authorization: "Bearer sekret-key" },
  "a key called anonymous": { Authorization: "Bearer sekret-key-anonymous" },
  anonymous: {},
};

const files = new Map<string, FileObject>();

beforeAll(async () => {
  gateway = await bed.gateway({ config: { backends: [{ name: "demo", type: "demo" }], api_keys: { keys: KEYS } } });
  for (const [name, headers] of Object.entries(OWNERS)) {
    files.set(name, await uploadFile(gateway, `of ${name}`, { headers }));
  }
});

/** Never given to a file, and as long as those that are. */
const UNKNOWN = `file-${"0".repeat(24)}`;

const ROUTES: [method: string, path: string][] = ["/v1/files", "/anthropic/v1/files"].flatMap((path) => [
  ["GET", `${path}/{id}`],
  ["HEAD", `${path}/{id}`],
  ["DELETE", `${path}/{id}`],
  ["GET", `${path}/{id}/content`],
  ["HEAD", `${path}/{id}/content`],
]);

/** All of an answer but the ids of the request and of the file. */
async function answerFor(method: string, path: string, id: string, headers: Record<string, string>): Promise<object> {
  const response = await gateway.fetch(path.replace("{id}", id), { method, headers });
  const own = [response.headers.get("x-request-id"), response.headers.get("x-signalbox-request-id"), id];
  const hide = (text: string) => own.reduce<string>((shown, found) => shown.replaceAll(found ?? "", "ID"), text);
  const kept = [...response.headers].filter(([name]) => name !== "date").map(([name, value]) => [name, hide(value)]);
  return { status: response.status, headers: kept, body: hide(await response.text()) };
}

for (const [method, path] of ROUTES) {
  test(`${method} ${path} of somebody else's file is as of none`, async () => {
    for (const [asking, headers] of Object.entries(OWNERS)) {
      const ofNone = await answerFor(method, path, UNKNOWN, headers);
      expect(ofNone).toMatchObject({ status: 404 });
      for (const [owner, { id }] of files) {
        if (owner === asking) continue;
        const conditions = { ...headers, "If-None-Match": "*", Range: "bytes=0-1" };
        expect({ asking, owner, answer: await answerFor(method, path, id, headers) }).toEqual({
          asking,
          owner,
          answer: ofNone,
        });
        expect(await answerFor(method, path, id, conditions)).toEqual(ofNone);
      }
    }
  });
}

test("lists have the caller's files alone, wherever they begin", async () => {
  for (const [asking, headers] of Object.entries(OWNERS)) {
    const own = files.get(asking)?.id as string;
    expect(await listedIds(gateway, headers)).toEqual([own]);
    const others = [...files.values()].map(({ id }) => id).filter((id) => id !== own);
    const list = async (path: string) => {
      const response = await gateway.fetch(path, { headers });
      return ((await response.json()) as { data: FileObject[] }).data.map(({ id }) => id);
    };
    for (const id of [...others, UNKNOWN]) {
      expect(await list(`/v1/files?after=${id}`)).toEqual([own]);
      for (const parameter of ["after_id", "before_id", "page"]) {
        expect(await list(`/anthropic/v1/files?${parameter}=${id}`)).toEqual([own]);
      }
      expect(await list(`/anthropic/v1/files?ids[]=${id}`)).toEqual([]);
    }
  }
});

test("keys of one organisation share its files", async () => {
  const headers = { "X-API-Key": "sekret-org-one-again" };
  const file = files.get("organization") as FileObject;
  expect(await listedIds(gateway, headers)).toEqual([file.id]);
  const content = await gateway.fetch(`/anthropic/v1/files/${file.id}/content`, { headers });
  expect(await content.text()).toBe("of organization");
});

test("a form cannot say whose its file is", async () => {
  const parts = [PURPOSE, filePart("x"), { name: "owner", content: "organization:same" }];
  const response = await sendForm(gateway, parts, { headers: OWNERS.user as Record<string, string> });
  const { id } = (await response.json()) as FileObject;
  expect(await listedIds(gateway, OWNERS.organization)).not.toContain(id);
  expect(await listedIds(gateway, OWNERS.user)).toContain(id);
});

test("all of them are still there, and whole", async () => {
  for (const [name, { id }] of files) {
    const content = await gateway.fetch(`/v1/files/${id}/content`, OWNERS[name] ? { headers: OWNERS[name] } : {});
    expect(await content.text()).toBe(`of ${name}`);
  }
});
