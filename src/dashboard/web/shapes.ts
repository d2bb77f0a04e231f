// What the admin API answers, as far as the dashboard reads it; GET /openapi.json has all of it.

export interface SignedIn {
  method: "none" | "bearer_token" | "basic" | "api_key";
  name: string | null;
  elevated: boolean;
  via: "session" | "credentials" | "address";
}

export interface BackendRow {
  name: string;
  url: string;
  type: string;
  enabled: boolean;
  phase: "active" | "draining";
  drain_remaining_ms: number | null;
  is_healthy: boolean;
  can_be_asked: boolean;
  state: "unknown" | "ready" | "warming_up" | "down" | "unhealthy";
  circuit: "closed" | "open" | "half_open";
  consecutive_failures: number;
  last_check: string | null;
  last_error: string | null;
  response_time_ms: number | null;
  models: string[];
  weight: number;
  in_flight: number;
  total_requests: number;
  failed_requests: number;
}

export interface BackendList {
  backends: BackendRow[];
  healthy_count: number;
  askable_count: number;
  total_count: number;
}

interface CountedRow {
  total_requests: number;
  successful_requests: number;
  failed_requests: number;
  refused_requests: number;
  total_prompt_tokens: number;
  total_completion_tokens: number;
  total_tokens: number;
  avg_latency_ms: number;
}

interface Latencies {
  p50_latency_ms: number;
  p95_latency_ms: number;
  p99_latency_ms: number;
}

export interface ModelStats extends CountedRow {
  model_id: string;
  avg_tokens_per_sec: number;
  last_used: string;
}

export interface BackendStats extends CountedRow, Latencies {
  backend_name: string;
  avg_tokens_per_sec: number;
  last_used: string;
  p50_first_token_ms: number | null;
  p95_first_token_ms: number | null;
}

export interface Statistics {
  uptime_seconds: number;
  overall: CountedRow & Latencies & { tokens_per_sec_avg: number };
  models: ModelStats[];
  backends: BackendStats[];
}

export interface Health {
  status: "healthy" | "degraded" | "unhealthy";
  version: string;
  uptime: number;
  timestamp: string;
  services: Record<string, { status: string; message: string }>;
  metrics: { requests_per_second: number; error_rate: number; memory_usage_mb: number; cpu_usage_percent: number };
}

interface UsageSums {
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  cost: number;
}

export type UsageRow = UsageSums & Record<string, string | number>;

export interface Usage {
  by: string[];
  total: UsageSums;
  rows: UsageRow[];
}

export type Outcome = "running" | "succeeded" | "refused" | "failed" | "stream_broken" | "client_left";

export interface RequestRow {
  id: string;
  request_id: string;
  started_at: string;
  finished: boolean;
  outcome: Outcome;
  operation: string;
  model: string;
  answered_by: string | null;
  stream: boolean;
  key_id: string | null;
  user_id: string | null;
  organization_id: string | null;
  client: string | null;
  /** Method and path, where the model is not known. */
  target: string | null;
  backend: string | null;
  status: number | null;
  failure: string | null;
  code: string | null;
  attempts: number;
  duration_ms: number;
  first_byte_ms: number | null;
  prompt_tokens: number | null;
  completion_tokens: number | null;
}

export interface RequestList {
  requests: RequestRow[];
  total: number;
  /** Null: everything was. */
  searched_since: string | null;
  next_cursor: string | null;
}

export interface Candidate {
  backend: string;
  score?: number;
  in_flight?: number;
  latency_ms?: number;
  excluded?: string;
  chosen?: boolean;
  why?: string;
}

export interface Step {
  kind: string;
  at_ms: number;
  /** In words. */
  text?: string | null;
  backend?: string;
  model?: string;
  strategy?: string | null;
  score_means?: string | null;
  candidates?: Candidate[];
  outcome?: "failed" | "running" | "succeeded";
  failure?: string | null;
  detail?: string | null;
  status?: number | null;
  duration_ms?: number | null;
  first_byte_ms?: number | null;
  reason?: string;
  from?: string;
  to?: string;
  leader?: string;
  field?: string;
}

export interface Story extends RequestRow {
  summary?: string;
  explanation?: string[];
  error?: { type: string; code: string | number | null; message: string } | null;
  cache: { decision: "HIT" | "MISS" | "BYPASS"; reason: string | null } | null;
  timings: {
    total_ms: number;
    gateway_ms: number | null;
    backend_ms: number | null;
    first_token_ms: number | null;
    first_byte_ms: number | null;
    until_first_attempt_ms?: number | null;
    tokens_per_second?: number | null;
    waiting_ms: number;
  };
  steps: Step[];
  steps_dropped: number;
  others: string[];
}

export interface ErrorRow {
  id: string;
  request_id: string;
  timestamp: string;
  status: number;
  type: string;
  code: string | number | null;
  message: string;
  model: string | null;
  backend: string | null;
  attempts: { backend: string; failure: string; model?: string; duration_ms?: number }[];
}

export interface ErrorList {
  errors: ErrorRow[];
  total: number;
}

export interface ErrorStats {
  total: number;
  by_type: Record<string, number>;
  by_status: Record<string, number>;
  by_backend: Record<string, number>;
}

export interface ConfigSummary {
  version: number;
  last_modified: string;
  pending_sections: string[];
  pending_restart: string[];
  storage_problem: string | null;
}

export interface SectionInfo {
  name: string;
  description: string;
  hot_reload_capability: string;
}

export interface SectionList {
  sections: SectionInfo[];
  extensions: SectionInfo[];
}

export interface Exported {
  content: string;
  version: number;
}

export type Changes = Record<string, Record<string, { from?: unknown; to?: unknown }>>;

interface ValidationError {
  field: string;
  message: string;
  line?: number;
}

export interface Preview {
  valid: boolean;
  errors: ValidationError[];
  warnings: string[];
  changes_preview: Changes;
  estimated_impact?: string;
}

export interface Imported {
  message: string;
  version: number;
  applied: boolean;
}

export interface VersionRow {
  version: number;
  timestamp: string;
  sections_changed: string[];
  source: string;
  user: string | null;
  description: string | null;
  rollback_available: boolean;
  changes: Changes;
  replaced: string[];
}

export interface History {
  history: VersionRow[];
  total_entries: number;
  current_version: number;
}

export interface Staged {
  staged: { section: string; timestamp: string; user: string | null; conflict: boolean; changes: Changes[string] }[];
  total: number;
}

export interface CacheStats {
  enabled: boolean;
  backend?: string;
  capacity?: number | null;
  max_bytes?: number | null;
  entries?: number | null;
  bytes?: number | null;
  hits?: number;
  misses?: number;
  stores?: number;
  evictions?: number | null;
  connected?: boolean;
  models?: {
    model: string;
    hits: number;
    misses: number;
    stores: number;
    entries: number | null;
    bytes: number | null;
  }[];
}

export interface KvIndex {
  enabled: boolean;
  entries: number;
  max_entries: number;
  bytes: number;
  hits: number;
  lookups: number;
  backends: { backend_name: string; entries: number; distrusted: boolean }[];
}

export interface KeyList {
  keys: {
    id: string;
    user_id: string | null;
    organization_id: string | null;
    scopes: string[];
    rate_limit: number | null;
    enabled: boolean;
    expires_at: string | null;
    is_expired: boolean;
  }[];
}

/** Of /admin/events. */
export interface RequestEvent {
  at: string;
  interval_ms: number;
  total: number;
  failed: number;
  refused: number;
  client_left: number;
  avg_duration_ms: number;
  max_duration_ms: number;
  avg_first_byte_ms: number | null;
  prompt_tokens: number;
  completion_tokens: number;
  requests: RequestRow[];
  omitted: number;
}
