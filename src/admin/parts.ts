// What the control plane reads and changes. Nothing of it is looked at before a request asks for it, but the path of the
// metrics.

import type { KeyIdentity } from "../access/key-identity.ts";
import type { KeyStore } from "../access/key-store.ts";
import type { RunningSession } from "../acp/running-sessions.ts";
import type { AdmissionView } from "../admission/admission.ts";
import type { BatchesInUse } from "../batches/batch-store.ts";
import type { Ledger } from "../budgets/ledger.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { ReloadStatus } from "../config/store/file-reload.ts";
import type { ConfigStore } from "../config/store/store.ts";
import type { FilesInUse } from "../files/file-store.ts";
import type { BackendStates } from "../fleet/status.ts";
import type { EventSourceView } from "../kv-index/event-source.ts";
import type { KvIndexStats } from "../kv-index/kv-index.ts";
import type { Clock } from "../lib/clock.ts";
import type { HistoryStore } from "../metrics/history/store.ts";
import type { MetricsRegistry } from "../metrics/registry.ts";
import type { ArmBook } from "../model-routes/arm-book.ts";
import type { Notifications } from "../notifications/notifications-part.ts";
import type { PromptFiles, PromptFolder } from "../prompts/prompt-files.ts";
import type { RecordingsInUse } from "../recording/recording-part.ts";
import type { RequestLog } from "../request-log/log.ts";
import type { ResponseCache } from "../response-cache/cache.ts";
import type { CircuitState } from "../routing/circuit-breaker.ts";
import type { AdminDoor } from "../server/endpoint.ts";
import type { StatsCollector } from "../stats/collector.ts";
import type { ErrorRecorder } from "../stats/error-recorder.ts";
import type { Happenings } from "../stats/happenings.ts";
import type { Stories } from "../stats/stories.ts";
import type { AuditStore } from "./audit-store.ts";
import type { BackendUsage } from "./backend-view.ts";

export interface AdminParts {
  store: ConfigStore;
  /** Keys that were made through the admin API. */
  keyStore: KeyStore;
  files: FilesInUse;
  batches: BatchesInUse;
  recordings: RecordingsInUse;
  /** The settings in force now. */
  settings(): Settings;
  identify: KeyIdentity;
  clock: Clock;
  newId(): string;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  adminDoor: Pick<AdminDoor, "signOut">;
  /** How edits of the configuration file went. */
  reloadStatus(): ReloadStatus;
  promptFiles: PromptAccess;
  backendStates(): BackendStates;
  /** Closes a circuit; its state before. */
  resetCircuit(backendName: string): CircuitState;
  /** Undefined for a backend that has had no request. */
  backendUsage(name: string): BackendUsage | undefined;
  /** Paths below the data folder that cannot be written, each with the reason. */
  storageProblems(): readonly string[];
  ledger(): Ledger;
  /** Undefined while it is switched off. */
  audit(): AuditStore | undefined;
  notifications(): Pick<Notifications, "states" | "test">;
  happenings: Happenings;
  collector: StatsCollector;
  errors: ErrorRecorder;
  stories: Stories;
  /** Numbers of the targets of routes. */
  arms: Pick<ArmBook, "numbers">;
  /** Undefined: requests are kept in memory only. */
  requestLog: RequestLog | undefined;
  /** Undefined: no history is kept. */
  history: HistoryStore | undefined;
  /** Undefined: nothing is measured. */
  registry: MetricsRegistry | undefined;
  /** Undefined: there is one process. */
  workers?:
    | {
        rows(): readonly ShownWorker[];
        /** Counts by reason. */
        restarts(): Readonly<Record<RestartReason, number>>;
        /** Resolves with the number that is being replaced, when the new ones listen. */
        restart(): Promise<number>;
      }
    | undefined;
  /** The one that answers now; undefined while the response cache is off. */
  cache(): ResponseCache | undefined;
  /** Undefined while it is off. */
  kvIndex(): KvIndexView | undefined;
  /** Undefined where no request has ever waited. */
  queue(): AdmissionView | undefined;
  /** Sessions of all agents that share the data folder. */
  agentSessions(): Promise<readonly RunningSession[]>;
}

interface KvIndexView {
  stats(): KvIndexStats & { eventSources: EventSourceView[] };
  /** Returns the number of removed entries. */
  clear(backendName?: string): number;
}

export type RestartReason = "crash" | "hang" | "memory" | "request";

interface ShownWorker {
  pid: number;
  state: "starting" | "running" | "draining";
  startedAtMs: number;
  /** Undefined until it has reported. */
  numbers: { openRequests: number; openStreams: number; residentBytes: number; cpuSeconds: number } | undefined;
}

interface PromptAccess extends PromptFolder {
  /** The prompts in force, by the names that the configuration gives the files. */
  current(): PromptFiles;
  /** Takes effect with the next request. */
  use(files: PromptFiles): Promise<void>;
}
