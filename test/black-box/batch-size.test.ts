// The memory of a gateway that runs a large batch. The long form, as large as batches may be: SIGNALBOX_BATCH_LINES=50000.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { batchLine, createBatch, linesOf, openaiClient, whenEnded } from "../support/batch-client.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

const LINES = Number(process.env.SIGNALBOX_BATCH_LINES ?? 1_000);
/** 50,000 lines are 200 MB. */
const LINE_BYTES = 4_000;
/** Less than the largest input; most of it is what the runtime has not collected yet. */
const MOST_GROWTH_MB = 190;

function megabytes(pid: number, field: "VmRSS" | "VmHWM"): number {
  const [, kilobytes] = new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

test.if(process.platform === "linux")(
  `${LINES} lines of ${LINE_BYTES} bytes need no memory of that size`,
  async () => {
    const content = "word ".repeat(LINE_BYTES / 5 - 28);
    const backend = bed.backend({
      answer() {
        backend.requests.length = 0;
        return chat(content);
      },
    });
    const gateway = await bed.process({
      config: {
        backends: [{ name: "engine", type: "vllm", url: backend.url, models: ["m"] }],
        health_checks: { enabled: false },
        logging: { level: "warn" },
      },
    });
    const client = openaiClient(gateway);
    const body = { model: "m", messages: [{ role: "user", content }] };
    const lineOf = (id: string) => batchLine(id, { body });
    // What a small one needs is there already.
    const few = Array.from({ length: 500 }, (_, index) => lineOf(`first-${index}`));
    await whenEnded(client, (await createBatch(client, few)).id);
    const before = megabytes(gateway.pid, "VmRSS");
    const startMs = performance.now();
    const { id } = await createBatch(
      client,
      Array.from({ length: LINES }, (_, index) => lineOf(`line-${index}`)),
    );
    const largest = new Map<string, number>();
    const watching = setInterval(async () => {
      const now = megabytes(gateway.pid, "VmRSS");
      const { status, request_counts } = await client.batches.retrieve(id);
      const tenths = Math.floor((10 * (request_counts?.completed ?? 0)) / LINES);
      const phase = status === "in_progress" ? `${tenths * 10} %` : status;
      largest.set(phase, Math.max(largest.get(phase) ?? 0, Math.round(now)));
    }, 200);
    const batch = await whenEnded(client, id, 500_000);
    clearInterval(watching);
    const seconds = (performance.now() - startMs) / 1000;
    const peak = megabytes(gateway.pid, "VmHWM");
    expect(batch.request_counts).toEqual({ total: LINES, completed: LINES, failed: 0 });
    const { bytes } = await client.files.retrieve(batch.output_file_id as string);
    expect(bytes).toBeGreaterThan(LINES * LINE_BYTES * 0.9);
    const ids = new Set((await linesOf(client, batch.output_file_id)).map((line) => line.custom_id));
    expect(ids.size).toBe(LINES);
    const numbers = [before, peak].map(Math.round).join(" -> ");
    console.log(
      `batch (${LINES} lines, ${Math.round(bytes / 1e6)} MB out): ${numbers} MB, ${seconds.toFixed(1)} s`,
      Object.fromEntries(largest),
    );
    expect(peak - before).toBeLessThan(MOST_GROWTH_MB);
  },
  600_000,
);
