// All of deploy and of the workflows: YAML and JSON that can be read, and nothing in it that holds in one place only.

import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { deployFiles, ROOT, read, readYaml } from "./repository.ts";

const workflows = readdirSync(join(ROOT, ".github", "workflows")).map((name) => `.github/workflows/${name}`);
const files = [...deployFiles(), ...workflows];
const templates = files.filter((path) => path.includes("/templates/"));

test("every YAML and JSON file can be read", () => {
  const yaml = files.filter((path) => /\.ya?ml$/.test(path) && !templates.includes(path));
  expect(yaml.length).toBeGreaterThan(12);
  for (const path of yaml) expect(readYaml(path).length).toBeGreaterThan(0);
  const json = files.filter((path) => path.endsWith(".json"));
  expect(json.length).toBe(2);
  for (const path of json) expect(Object.keys(JSON.parse(read(path)))).not.toEqual([]);
});

test("every file says first what it is for", () => {
  const silent = files.filter((path) => !/^(#!\/bin\/sh\n)?#|^\{|^---\n# Source/.test(read(path)));
  // The rendered chart and the templates say it by their names; a digest is one line.
  expect(silent.filter((path) => !/\/templates\/|\/Chart\.yaml|\.helmignore|\/of-chart$/.test(path))).toEqual([]);
});

test("images and actions are pinned", () => {
  const images = files
    .filter((path) => !path.includes("/helm/") && !workflows.includes(path))
    .flatMap((path) =>
      [...read(path).matchAll(/^(?:FROM (?:--\S+ )?|\s+image: )(\S+)/gm)].map(([, image = ""]) => image),
    );
  expect(images.length).toBe(6);
  for (const image of images) expect(image).toMatch(/:(local$|v?\d+\.\d+)/);
  const actions = workflows.flatMap((path) => [...read(path).matchAll(/uses: (\S+)(.*)/g)]);
  expect(actions.length).toBeGreaterThan(10);
  for (const [, action, comment] of actions) {
    expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
    expect(comment).toMatch(/^ # v\d+\.\d+\.\d+$/);
  }
});

test("workflows may do no more than their jobs need", () => {
  for (const path of workflows) {
    const [workflow] = readYaml(path) as [
      {
        permissions: object;
        jobs: Record<string, { permissions?: Record<string, string>; "timeout-minutes": number }>;
      },
    ];
    expect(workflow.permissions).toEqual({ contents: "read" });
    for (const [name, job] of Object.entries(workflow.jobs)) {
      expect(job["timeout-minutes"]).toBeGreaterThan(0);
      if (!["publish", "image"].includes(name) || path.endsWith("ci.yml")) expect(job.permissions).toBeUndefined();
    }
    // What strangers name, such as branches, never becomes a part of a script.
    for (const [script] of read(path).matchAll(/run: (?:\|\n(?: {10}.*\n)+|.*)/g)) {
      expect(script).not.toMatch(/\$\{\{ *(github\.(event|head_ref|ref)|inputs)/);
    }
  }
});
