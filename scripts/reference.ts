// Writes docs/reference.md from the schema of the configuration.

import { REFERENCE_PAGE, renderReference } from "./reference-page.ts";

await Bun.write(REFERENCE_PAGE, renderReference());
