// The walks as ARCHITECTURE.md describes them: a name in bold, what happens, and the rooms in a block.

import { join } from "node:path";
import { root } from "../source-files.ts";

export type Walks = Readonly<Record<string, readonly string[]>>;

const PAGE = join(root, "ARCHITECTURE.md");
const WALK = /^(\*\*([^*\n]+)\*\*: [\s\S]*?```text\n)([^`]+)```/gm;
const MAX_COLUMNS = 140;

export async function describedWalks(): Promise<Walks> {
  const walks = [...(await Bun.file(PAGE).text()).matchAll(WALK)];
  return Object.fromEntries(walks.map(([, , name = "", rooms = ""]) => [name, rooms.trim().split(/\s*->\s*/)]));
}

/** Exchanges the rooms; names and texts stay. */
export async function describeWalks(walks: Walks): Promise<void> {
  const page = await Bun.file(PAGE).text();
  const described = page.replaceAll(
    WALK,
    (_, before: string, name: string, rooms: string) => `${before}${wrapped(walks[name]) ?? rooms}\`\`\``,
  );
  await Bun.write(PAGE, described);
}

function wrapped(rooms: readonly string[] | undefined): string | undefined {
  let text = "";
  let columns = 0;
  for (const room of rooms ?? []) {
    const step = text === "" ? room : ` ->${columns + room.length > MAX_COLUMNS ? "\n" : " "}${room}`;
    columns = step.includes("\n") ? room.length : columns + step.length;
    text += step;
  }
  return text === "" ? undefined : `${text}\n`;
}
