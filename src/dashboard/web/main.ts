// The dashboard in the browser: begins when its page is loaded.

import { createApp } from "./app.ts";

createApp(new URL(".", location.href).href).start();
