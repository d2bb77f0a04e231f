// What the batch APIs of vendors have in common: each is a wire, asked about one backend at a time.

import type { Backend } from "../backends/backend.ts";
import type { SpooledLine, VendorBatchApi, VendorGroup } from "../batches/vendor/vendor-api.ts";

/** As VendorBatchApi, of one backend. */
export type VendorWire = { [Name in keyof VendorBatchApi]: OfBackend<VendorBatchApi[Name]> };

type OfBackend<Ask> = Ask extends (...asked: infer Asked) => infer Told
  ? (backend: Backend, ...asked: Asked) => Told
  : never;

/** Clocks differ. */
const CLOCK_SLACK_MS = 600_000;

/** Whether a batch is older than one that was created at `sinceMs` or later. */
export function isOlder(createdMs: number, sinceMs: number): boolean {
  return createdMs < sinceMs - CLOCK_SLACK_MS;
}

/**
 * Whether further pages of a list have older batches only.
 * @param firstMs - of the first batch of this page, which is the newest where the list is in the order of time; not every vendor
 * promises that
 */
export function isPast(firstMs: number, lastMs: number, sinceMs: number): boolean {
  return firstMs > lastMs && isOlder(lastMs, sinceMs);
}

/** The id that a vendor knows a line by: where it stands in our batch, never what the client calls it. */
export function lineId({ name }: Pick<VendorGroup, "name">, position: number): string {
  return `${name}-${position}`;
}

/** Undefined for a line of another group. */
export function positionIn({ name }: Pick<VendorGroup, "name">, id: unknown): number | undefined {
  if (typeof id !== "string" || !id.startsWith(`${name}-`)) return undefined;
  const position = id.slice(name.length + 1);
  return /^\d{1,9}$/.test(position) ? Number(position) : undefined;
}

/** One text for all lines. */
export function joinLines(
  lines: readonly SpooledLine[],
  write: (line: SpooledLine) => readonly (string | Uint8Array)[],
): Buffer {
  const pieces = lines.flatMap((line) =>
    write(line).map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)),
  );
  return Buffer.concat(pieces);
}
