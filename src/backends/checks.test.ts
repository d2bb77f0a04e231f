// What a type wants of its backend is said with the field and an example.

import { expect, test } from "bun:test";
import { backendsSection } from "../config/sections/backends.ts";
import { backendProblems } from "./checks.ts";

function problemsOf(backend: object) {
  const backends = backendsSection.schema.parse([{ name: "a", ...backend }]);
  return backendProblems(backends).map(({ path, message }) => `${path.join(".")}: ${message}`);
}

test.each([
  [
    { type: "cloudflare" },
    [
      "backends.0.url: is required for a backend of type cloudflare, such as https://api.cloudflare.com/client/v4/accounts/ACCOUNT_ID/ai/v1",
      "backends.0.models: is required for cloudflare: it has no list of its models",
    ],
  ],
  [{ type: "perplexity" }, ["backends.0.models: is required for perplexity: it has no list of its models"]],
  [
    { type: "azure" },
    [
      "backends.0.url: is required for a backend of type azure",
      "backends.0.models: is required for azure: the names of its deployments",
    ],
  ],
  [
    { type: "azure", url: "https://a.example", models: ["a"], batch_deployments: { a: "a-batch", b: "b-batch" } },
    ["backends.0.batch_deployments.b: must be named in models or deployments too, for requests outside of batches"],
  ],
  [{ type: "groq" }, []],
])("%j: %j", (backend, problems) => {
  expect(problemsOf(backend)).toEqual(problems);
});
