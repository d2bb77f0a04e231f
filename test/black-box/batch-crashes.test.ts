// Kills the gateway again and again during one batch of 2,000 lines: every line has exactly one result in the end, and a line
// that was asked twice says so. The long form: SIGNALBOX_BATCH_KILLS=100.

import { expect, test } from "bun:test";
import { batchLine, createBatch, linesOf, openaiClient, whenEnded } from "../support/batch-client.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const KILLS = Number(process.env.SIGNALBOX_BATCH_KILLS ?? 5);
const LINES = 2_000;
const AT_ONCE = 16;

interface Question {
  messages: { content: string }[];
}

test(
  `${KILLS} kills during ${LINES} lines lose none, and double none`,
  async () => {
    const asks = new Map<string, number>();
    let asked = 0;
    const backend = bed.backend({
      answer(request) {
        const id = request.json<Question>().messages[0]?.content ?? "";
        asks.set(id, (asks.get(id) ?? 0) + 1);
        asked++;
        backend.requests.length = 0;
        return { ...chat(`answer to ${id}`), beforeHeadersMs: 3 };
      },
    });
    const gateway = await bed.process({
      config: {
        backends: [{ name: "engine", type: "vllm", url: backend.url, models: ["m"] }],
        health_checks: { enabled: false },
        batches: { max_concurrent: AT_ONCE },
      },
    });
    const ids = Array.from({ length: LINES }, (_, index) => `line-${index}`);
    const lines = ids.map((id) => batchLine(id, { body: { model: "m", messages: [{ role: "user", content: id }] } }));
    const { id } = await createBatch(openaiClient(gateway), lines);
    for (let kill = 0; kill < KILLS; kill++) {
      // The first while the input is taken in, the last while the results are written, or near to it.
      const from = Math.floor((kill / Math.max(KILLS - 1, 1)) * LINES);
      await waitFor(`kill ${kill}`, async () => asked >= from || (await isOver(id)), {
        timeoutMs: 30_000,
        explain: () => `${asked} lines asked`,
      });
      gateway.process.kill("SIGKILL");
      await gateway.process.finished();
      await gateway.restart();
    }
    const batch = await whenEnded(openaiClient(gateway), id);
    expect(batch).toMatchObject({
      status: "completed",
      error_file_id: null,
      request_counts: { total: LINES, completed: LINES, failed: 0 },
      usage: { input_tokens: 3 * LINES, output_tokens: 2 * LINES },
    });
    const results = await linesOf(openaiClient(gateway), batch.output_file_id);
    expect(results.map((line) => line.custom_id).sort()).toEqual(ids.toSorted());
    const wrong = results.filter(
      ({ custom_id, response }) => !JSON.stringify(response?.body).includes(`"answer to ${custom_id}"`),
    );
    expect(wrong).toEqual([]);
    const again = new Set(results.filter(({ asked_again }) => asked_again === true).map((line) => line.custom_id));
    const silent = [...asks].filter(([id, times]) => times > 1 && !again.has(id));
    expect(silent).toEqual([]);
    const twice = [...asks.values()].filter((times) => times > 1).length;
    console.log(
      `batch (${KILLS} kills): ${asked} asks for ${LINES} lines, ${twice} asked more than once, ${again.size} say so`,
    );
    expect(again.size).toBeLessThanOrEqual(KILLS * AT_ONCE);

    async function isOver(batchId: string): Promise<boolean> {
      return (await openaiClient(gateway).batches.retrieve(batchId)).status === "completed";
    }
  },
  60_000 + KILLS * 5_000,
);
