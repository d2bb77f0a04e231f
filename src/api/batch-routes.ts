// What callers ask about their batches, in the shapes of each API.

import type { DescribedEndpoint } from "../openapi/operation.ts";
import { batchRoutes } from "./batches.ts";
import { type MessageBatchParts, messageBatchRoutes } from "./message-batches.ts";

/** @param parts - of the process that keeps the configuration, which runs the batches */
export function allBatchRoutes(parts: () => MessageBatchParts): DescribedEndpoint[] {
  return [...batchRoutes(parts), ...messageBatchRoutes(parts)];
}
