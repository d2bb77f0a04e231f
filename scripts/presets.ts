// Writes the table of presets in docs/backends.md.

import { BACKENDS_PAGE, withPresets } from "./presets-page.ts";

await Bun.write(BACKENDS_PAGE, withPresets(await Bun.file(BACKENDS_PAGE).text()));
