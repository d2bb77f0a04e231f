// The floors of the house, which imports go down.

import { ROOMS } from "../../scripts/rooms.ts";

/** From the top to the bottom; rooms on one floor may import each other as long as no cycle of files appears. */
export const LAYERS: readonly (readonly string[])[] = Map.groupBy(ROOMS, ({ floor }) => floor)
  .values()
  .map((floor) => floor.map(({ name }) => name))
  .toArray();

/** The folders of src/config, likewise; the purpose of the room lists them. */
export const CONFIG_ROOMS: readonly string[] = [
  ...(ROOMS.find(({ name }) => name === "config")?.purpose.matchAll(/`(\w+)`/g) ?? []),
].map(([, folder = ""]) => folder);
