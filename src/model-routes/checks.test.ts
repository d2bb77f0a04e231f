// Rules about routes: what is refused when the configuration is checked.

import { expect, test } from "bun:test";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { formatPath } from "../config/values/values.ts";
import { routeProblems, routeWarnings } from "./checks.ts";

function settingsOf(routes: ConfigDocument["routes"]) {
  return documentSchema.parse({ backends: [{ name: "gpu-1", type: "vllm", url: "http://127.0.0.1:1" }], routes });
}

const problems = (routes: ConfigDocument["routes"]) =>
  routeProblems(settingsOf(routes)).map(({ path, message }) => `${formatPath(path)}: ${message}`);

test("good routes have no problems", () => {
  expect(
    problems([
      { name: "a", targets: [{ model: "a" }, { model: "b", backend: "gpu-1" }] },
      { name: "b", targets: [{ model: "m" }] },
      { name: "c*", targets: [{ model: "cx" }] },
      { name: "*", targets: [{ model: "b" }], mirror: { model: "m", share: 0.5 } },
    ]),
  ).toEqual([]);
});

test("circles, and routes that lead too deep", () => {
  expect(
    problems([
      { name: "a", targets: [{ model: "b" }] },
      { name: "b", targets: [{ model: "m" }], when: [{ has: "image", targets: [{ model: "a" }] }] },
    ]),
  ).toEqual([
    "routes[0].targets[0].model: the routes run in a circle: a -> b -> a",
    "routes[1].when[0].targets[0].model: the routes run in a circle: b -> a -> b",
  ]);
  expect(
    problems([
      { name: "a", targets: [{ model: "b" }] },
      { name: "b", targets: [{ model: "c" }] },
      { name: "c", targets: [{ model: "m" }] },
    ]),
  ).toEqual([
    "routes[0].targets[0].model: leads to a third route (a -> b -> c); a route may lead to another one, and that to models alone",
  ]);
});

test("names, backends and weights", () => {
  expect(
    problems([
      { name: "a", targets: [{ model: "m" }, { model: "m" }] },
      { name: "a", targets: [{ model: "m", weight: 0 }] },
      { name: "b", targets: [{ model: "m", backend: "gpu-2" }], rollback: { metric: "cost" } },
      { name: "c", targets: [{ model: "m" }], mirror: { model: "a", share: 1 } },
    ]),
  ).toEqual([
    'routes[0].targets[1]: is named "m" as one before it; give it another name',
    'routes[1].name: "a" is there twice',
    "routes[1].targets: needs a target with a weight greater than 0",
    'routes[2].targets[0].backend: there is no backend "gpu-2"; did you mean "gpu-1"?',
    "routes[2].rollback: needs a second target to compare with",
    'routes[3].mirror.model: "a" is a route; name a model',
  ]);
});

test("models that no backend serves now are warned of", () => {
  const routes: ConfigDocument["routes"] = [
    { name: "a", targets: [{ model: "gone" }, { model: "b" }] },
    { name: "b", targets: [{ model: "here" }] },
  ];
  const served = { ids: ["here"], serves: (model: string) => model === "here" };
  expect(routeWarnings(settingsOf(routes), served)).toEqual([
    'routes[0].targets[0]: no backend serves a model "gone" now',
  ]);
});
