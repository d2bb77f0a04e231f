// Writes docs/map.md from the source.

import { MAP_PAGE, renderMap } from "./map-page.ts";

await Bun.write(MAP_PAGE, renderMap());
