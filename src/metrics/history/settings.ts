// What the metrics history is told by the configuration: section metrics.persistence.

export interface HistorySettings {
  enabled: boolean;
  /** Absolute. */
  path: string;
  snapshot_interval_seconds: number;
  retention_days: number;
  compaction: {
    enabled: boolean;
    /** In cron form; only minute and hour are honoured. */
    schedule: string;
  };
}

export const DAY_MS = 86_400_000;
