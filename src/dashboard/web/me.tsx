// The page for holders of keys in the browser: begins when it is loaded. Nothing of the admin API is part of it.

import { render } from "preact";
import { createOwnView } from "./own/own-view.ts";
import { OwnPage } from "./own/page.tsx";

const view = createOwnView(new URL("..", location.href).href);
// A page that the browser keeps for its button Back would still have the key.
window.addEventListener("pagehide", view.forget);
render(<OwnPage view={view} />, document.body);
