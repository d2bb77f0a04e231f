// Where paths lead, in real folders.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outsideFolders, truePath } from "./places.ts";

let root = "";
const at = (path: string) => join(root, path);

beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "signalbox-places-")));
  await mkdir(at("project/src"), { recursive: true });
  await mkdir(at("other/deep"), { recursive: true });
  await writeFile(at("other/a"), "A");
  await symlink(at("project"), at("shortcut"));
  await symlink(at("other"), at("project/out"));
  await symlink(at("other/a"), at("project/file"));
  await symlink("../other/new", at("project/dangling"));
  await symlink(at("project/src"), at("other/back"));
  await symlink(at("project/round"), at("project/round"));
});

afterAll(() => rm(root, { recursive: true, force: true }));

const CASES: [title: string, path: string, folders: string[]][] = [
  ["a file", "project/a", []],
  ["a file that is not there, in a folder that is not there", "project/new/a", []],
  ["by another way to the project", "shortcut/a", []],
  ["a link back into the project", "other/back/a", []],
  ["beside the project", "project-2/a", ["project-2"]],
  ["a link out of it", "project/out/a", ["other"]],
  ["a link out of it, and a folder below", "project/out/deep/new", ["other/deep"]],
  ["a link to a file", "project/file", ["other"]],
  ["a link to a file that is not there", "project/dangling", ["other"]],
  ["a link to itself", "project/round", []],
];

test.each(CASES)("%s", async (_title, path, folders) => {
  for (const folder of ["project", "shortcut"]) {
    expect(await outsideFolders([{ path: at(path) }], [at(folder)])).toEqual(folders.map(at));
  }
});

test("of a folder it is the folder itself, and of several places each folder once", async () => {
  const places = [
    { path: at("other/deep"), isFolder: true as const },
    { path: at("other/a") },
    { path: at("other/b") },
  ];
  expect(await outsideFolders(places, [at("project")])).toEqual([at("other/deep"), at("other")]);
  expect(await outsideFolders(places, [at("project"), at("other")])).toEqual([]);
});

test("paths of another machine are as they are written", async () => {
  expect(await truePath("/nowhere/here/a")).toBe("/nowhere/here/a");
  expect(await outsideFolders([{ path: "/nowhere/here/a" }], ["/nowhere/here"])).toEqual([]);
});
