// Every operation of Signalbox's HTTP API, in the order of the document.

import { BACKEND_OPERATIONS } from "./backend-operations.ts";
import { CONFIGURATION_OPERATIONS } from "./configuration-operations.ts";
import { KEY_OPERATIONS } from "./key-operations.ts";
import { OBSERVATION_OPERATIONS } from "./observation-operations.ts";
import type { Operation } from "./operation.ts";
import { PUBLIC_OPERATIONS } from "./public-operations.ts";

export const OPERATIONS: readonly Operation[] = [
  ...PUBLIC_OPERATIONS,
  ...CONFIGURATION_OPERATIONS,
  ...BACKEND_OPERATIONS,
  ...KEY_OPERATIONS,
  ...OBSERVATION_OPERATIONS,
];
