// Gives the components the parts of the app.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { App } from "./app.ts";

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error("a component of the dashboard is outside of its app");
  return app;
}
