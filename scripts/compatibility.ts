// Writes docs/compatibility.md from a run of the matrix.

import { PAGE, renderPage } from "../test/translation/render.ts";
import { runMatrix } from "../test/translation/run.ts";

const matrix = await runMatrix();
const failed = matrix.cells.filter(({ verdict }) => verdict.outcome === "failed");
const stuck = matrix.moves.filter(({ problem }) => problem !== undefined);
for (const { client, backend, feature, verdict } of failed) {
  console.error(`${client.name} -> ${backend}, ${feature.title}: ${verdict.note}`);
}
for (const { client, from, to, problem } of stuck) console.error(`${client.name}: ${from} -> ${to}: ${problem}`);
if (failed.length + stuck.length > 0) process.exit(1);
await Bun.write(PAGE, renderPage(matrix));
