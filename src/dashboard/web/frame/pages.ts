// Every page of the dashboard, in the order of the navigation.

import type { ComponentType } from "preact";
import type { BrowserSession } from "../app/session.ts";
import { AuditPage } from "../pages/audit.tsx";
import { BackendsPage } from "../pages/backends.tsx";
import { BatchesPage } from "../pages/batches.tsx";
import { BudgetsPage } from "../pages/budgets.tsx";
import { ConfigurationPage } from "../pages/configuration.tsx";
import { ErrorsPage } from "../pages/errors.tsx";
import { FallbackPage } from "../pages/fallback.tsx";
import { KeysPage } from "../pages/keys.tsx";
import { LimitsPage } from "../pages/limits.tsx";
import { ModelsPage } from "../pages/models.tsx";
import { NotificationsPage } from "../pages/notifications.tsx";
import { OrganizationsPage } from "../pages/organizations.tsx";
import { OverviewPage } from "../pages/overview.tsx";
import { PlaygroundPage } from "../pages/playground.tsx";
import { PromptsPage } from "../pages/prompts.tsx";
import { QueuePage } from "../pages/queue.tsx";
import { RecordingsPage } from "../pages/recordings.tsx";
import { ReplaysPage } from "../pages/replays.tsx";
import { RequestPage } from "../pages/request.tsx";
import { RequestsPage } from "../pages/requests.tsx";
import { RoutesPage } from "../pages/routes.tsx";
import { UsagePage } from "../pages/usage.tsx";

interface PageEntry {
  label: string;
  page: ComponentType;
  /** The page whose part it is in the navigation. */
  under?: string;
  /** It shows the time that is chosen in the bar at the top. */
  hasRange?: true;
  /** A path of the admin API without which it shows nothing: it is offered to roles that may read it. */
  needs?: string;
}

const ENTRIES = {
  overview: { label: "Overview", page: OverviewPage, hasRange: true },
  requests: { label: "Requests", page: RequestsPage, hasRange: true },
  request: { label: "Request", page: RequestPage, under: "requests" },
  recordings: { label: "Recordings", page: RecordingsPage, hasRange: true, needs: "admin/recordings" },
  replays: { label: "Replays", page: ReplaysPage, hasRange: true, needs: "admin/replays" },
  errors: { label: "Errors", page: ErrorsPage, hasRange: true },
  backends: { label: "Backends", page: BackendsPage, hasRange: true },
  batches: { label: "Batches", page: BatchesPage },
  models: { label: "Models", page: ModelsPage, hasRange: true },
  queue: { label: "Queue", page: QueuePage },
  routes: { label: "Routes", page: RoutesPage },
  fallback: { label: "Fallback chains", page: FallbackPage },
  keys: { label: "Keys", page: KeysPage },
  organizations: { label: "Organizations", page: OrganizationsPage },
  budgets: { label: "Budgets", page: BudgetsPage },
  notifications: { label: "Notifications", page: NotificationsPage },
  prompts: { label: "Prompts", page: PromptsPage },
  usage: { label: "Usage", page: UsagePage, hasRange: true },
  limits: { label: "Limits & cache", page: LimitsPage },
  configuration: { label: "Configuration", page: ConfigurationPage },
  audit: { label: "Audit", page: AuditPage, hasRange: true, needs: "admin/audit" },
  playground: { label: "Playground", page: PlaygroundPage },
} satisfies Record<string, PageEntry>;

export type PageName = keyof typeof ENTRIES;
export const PAGES: Readonly<Record<PageName, PageEntry>> = ENTRIES;

/** Pages that are offered by their names, to the role of the person. */
export function offeredPages({ may }: Pick<BrowserSession, "may">): [PageName, PageEntry][] {
  return (Object.entries(PAGES) as [PageName, PageEntry][]).filter(
    ([, { under, needs }]) => under === undefined && (needs === undefined || may({ method: "GET", path: needs })),
  );
}
