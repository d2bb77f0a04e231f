// The batch APIs of the vendors behind backends: each backend is asked in the way of its kind.

import type { Backend } from "../backends/backend.ts";
import type { BackendBoard } from "../backends/board.ts";
import type { BatchApi } from "../backends/kind.ts";
import type { Transport } from "../backends/transport.ts";
import { type VendorBatchApi, type VendorGroup, VendorRefusal } from "../batches/vendor/vendor-api.ts";
import { createSerial } from "../lib/serial.ts";
import { createFilesWire } from "./files-wire.ts";
import { createInlineWire } from "./inline-wire.ts";
import { createOperationsWire } from "./operations-wire.ts";
import { createVendorCalls } from "./vendor-call.ts";
import type { VendorWire } from "./wire.ts";

interface VendorBatchParts {
  board(): BackendBoard;
  transport: Transport;
  wallTime(): number;
}

export function createVendorBatches({ board, transport, wallTime }: VendorBatchParts): VendorBatchApi {
  const calls = createVendorCalls(transport, wallTime);
  const wires: Readonly<Record<BatchApi["wire"], VendorWire>> = {
    files: createFilesWire(calls),
    inline: createInlineWire(calls),
    operations: createOperationsWire(calls),
  };
  /** What is sent is in memory: one batch after the other. */
  const sending = createSerial(Number.POSITIVE_INFINITY);

  function at({ backend: name }: VendorGroup): { wire: VendorWire; backend: Backend } {
    const backend = board().entries.find((entry) => entry.backend.name === name)?.backend;
    const api = backend?.kind.batchApi;
    if (backend === undefined || api === undefined)
      throw new VendorRefusal(`there is no backend '${name}' with batches any more`);
    return { wire: wires[api.wire], backend };
  }

  const inTurn = <Result>(task: () => Promise<Result>) => sending.run(task) as Promise<Result>;

  return {
    upload: (group, ...rest) =>
      inTurn(async () => {
        const { wire, backend } = at(group);
        return await wire.upload(backend, group, ...rest);
      }),
    create: (group, ...rest) =>
      inTurn(async () => {
        const { wire, backend } = at(group);
        return await wire.create(backend, group, ...rest);
      }),
    async find(group, ...rest) {
      const { wire, backend } = at(group);
      return await wire.find(backend, group, ...rest);
    },
    async isOver(group, ...rest) {
      const { wire, backend } = at(group);
      return await wire.isOver(backend, group, ...rest);
    },
    async *results(group, ...rest) {
      const { wire, backend } = at(group);
      yield* wire.results(backend, group, ...rest);
    },
    async cancel(group, ...rest) {
      const { wire, backend } = at(group);
      await wire.cancel(backend, group, ...rest);
    },
    async forget(group, ...rest) {
      const { wire, backend } = at(group);
      await wire.forget(backend, group, ...rest);
    },
  };
}
