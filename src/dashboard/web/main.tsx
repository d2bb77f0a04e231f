// The dashboard in the browser: begins when its page is loaded.

import { render } from "preact";
import { createApp } from "./app/app.ts";
import { AppContext } from "./app/context.ts";
import { Frame } from "./frame/frame.tsx";

const app = createApp(new URL(".", location.href).href);
void app.session.begin();
render(
  <AppContext.Provider value={app}>
    <Frame />
  </AppContext.Provider>,
  document.body,
);
