// Takes the colours that the user has chosen before anything is drawn, so that nothing flashes.

import { applyTheme, readTheme } from "./themes.ts";

applyTheme(readTheme());
