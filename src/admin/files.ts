// /admin/files: how many files there are, how much room they take, and whose they are. What they are called and contain is
// none of the administrator's business.

import {
  component,
  constant,
  count,
  described,
  list,
  oneOfTexts,
  schemasOf,
  shape,
  text,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";

const MAX_OWNERS = 100;

export const FileUsage = component("FileUsage", {
  oneOf: [
    shape({ enabled: constant(false) }),
    shape({
      enabled: constant(true),
      storage: oneOfTexts("local", "s3"),
      count,
      bytes: count,
      max_total_size: described(count, "0: no limit."),
      max_file_size: count,
      owners: described(
        list(shape({ owner: text, count, bytes: count })),
        `The ${MAX_OWNERS} with the most bytes: organization:<id>, user:<id>, key:<id>, or anonymous.`,
      ),
    }),
  ],
});

const SCHEMAS = schemasOf(FileUsage);

const endpoint = adminGroup("Observation", SCHEMAS);

export function fileRoutes(parts: Pick<AdminParts, "files" | "settings">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/files", {
      id: "getFileUsage",
      role: "viewer",
      summary: "How many files there are, and whose",
      answers: [jsonAnswer(FileUsage, "The numbers.")],
      errors: [503],
      async handle(call) {
        const opening = parts.files();
        if (opening === undefined) return answer(call, { enabled: false });
        const { storage, max_total_size, max_file_size } = parts.settings().files;
        const { count, bytes, owners } = (await opening).usage();
        const largest = owners.toSorted((first, second) => second.bytes - first.bytes).slice(0, MAX_OWNERS);
        return answer(call, { enabled: true, storage, count, bytes, max_total_size, max_file_size, owners: largest });
      },
    }),
  ];
}
