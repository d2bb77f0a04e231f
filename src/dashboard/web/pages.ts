// Every page of the dashboard, in the order of the navigation.

import type { MakePage } from "./context.ts";
import { backendsPage } from "./pages/backends.ts";
import { configurationPage } from "./pages/configuration.ts";
import { errorsPage } from "./pages/errors.ts";
import { limitsPage } from "./pages/limits.ts";
import { modelsPage } from "./pages/models.ts";
import { overviewPage } from "./pages/overview.ts";
import { playgroundPage } from "./pages/playground.ts";
import { requestPage } from "./pages/request.ts";
import { requestsPage } from "./pages/requests.ts";
import { usagePage } from "./pages/usage.ts";

interface PageEntry {
  label: string;
  make: MakePage;
  /** It stands in the navigation as a part of this one. */
  under?: string;
}

export const PAGES = {
  overview: { label: "Overview", make: overviewPage },
  requests: { label: "Requests", make: requestsPage },
  request: { label: "Request", make: requestPage, under: "requests" },
  errors: { label: "Errors", make: errorsPage },
  backends: { label: "Backends", make: backendsPage },
  models: { label: "Models", make: modelsPage },
  usage: { label: "Usage", make: usagePage },
  limits: { label: "Limits & cache", make: limitsPage },
  configuration: { label: "Configuration", make: configurationPage },
  playground: { label: "Playground", make: playgroundPage },
} satisfies Record<string, PageEntry> as Readonly<Record<PageName, PageEntry>>;

export type PageName =
  | "overview"
  | "requests"
  | "request"
  | "errors"
  | "backends"
  | "models"
  | "usage"
  | "limits"
  | "configuration"
  | "playground";
