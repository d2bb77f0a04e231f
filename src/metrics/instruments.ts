// Every metric there is, in one list: name, type, help and labels. docs/metrics.md shows the same list; a test compares.
// Names follow Prometheus (base units, _total) and, where they exist, the OpenTelemetry conventions for generative AI with
// their buckets.

export type InstrumentType = "counter" | "gauge" | "histogram";

export interface Instrument {
  name: string;
  type: InstrumentType;
  help: string;
  labels: readonly string[];
  /** Upper bounds, without +Inf. */
  buckets?: readonly number[];
}

const DURATION_BUCKETS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST_TOKEN_BUCKETS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const TOKEN_TIME_BUCKETS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const TOKEN_BUCKETS = Array.from({ length: 14 }, (_, power) => 4 ** power);

const GEN_AI_LABELS = ["gen_ai_operation_name", "gen_ai_request_model", "backend"] as const;

export const INSTRUMENTS = {
  // Requests, in the OpenTelemetry conventions for generative AI.
  requestDuration: {
    name: "gen_ai_server_request_duration_seconds",
    type: "histogram",
    help: "Time from the arrival of a request to the end of its answer. error_type is empty for a success.",
    labels: [...GEN_AI_LABELS, "error_type"],
    buckets: DURATION_BUCKETS,
  },
  timeToFirstToken: {
    name: "gen_ai_server_time_to_first_token_seconds",
    type: "histogram",
    help: "Time until the first byte of a streamed answer went to the client.",
    labels: GEN_AI_LABELS,
    buckets: FIRST_TOKEN_BUCKETS,
  },
  timePerOutputToken: {
    name: "gen_ai_server_time_per_output_token_seconds",
    type: "histogram",
    help: "Time per token after the first one, of complete streamed answers.",
    labels: GEN_AI_LABELS,
    buckets: TOKEN_TIME_BUCKETS,
  },
  tokenUsage: {
    name: "gen_ai_client_token_usage",
    type: "histogram",
    help: "Tokens per request, input and output.",
    labels: [...GEN_AI_LABELS, "gen_ai_token_type"],
    buckets: TOKEN_BUCKETS,
  },

  // Requests, as the gateway sees them.
  requests: {
    name: "signalbox_requests_total",
    type: "counter",
    help: "Finished requests by HTTP status; 499: the client left.",
    labels: ["operation", "model", "backend", "status"],
  },
  tokens: {
    name: "signalbox_tokens_total",
    type: "counter",
    help: "Tokens by type: input (all), output (all), and of these cache_read, cache_write, reasoning.",
    labels: ["model", "backend", "type"],
  },
  cost: {
    name: "signalbox_cost_total",
    type: "counter",
    help: "Cost of the tokens by the prices of the model metadata, in their currency.",
    labels: ["model", "backend"],
  },
  retries: {
    name: "signalbox_retries_total",
    type: "counter",
    help: "Attempts that another one followed, by the model and the backend that were asked.",
    labels: ["model", "backend"],
  },
  fallbacks: {
    name: "signalbox_fallbacks_total",
    type: "counter",
    help: "Requests for which another model was asked, by the reason.",
    labels: ["model", "reason"],
  },
  cacheDecisions: {
    name: "signalbox_response_cache_requests_total",
    type: "counter",
    help: "Requests by the decision of the response cache: hit, miss or bypass.",
    labels: ["result"],
  },
  sharedCalls: {
    name: "signalbox_deduplicated_requests_total",
    type: "counter",
    help: "Requests that were answered by the call of an identical one in flight.",
    labels: ["model"],
  },
  rateLimitRefusals: {
    name: "signalbox_rate_limit_refusals_total",
    type: "counter",
    help: "Refusals by whose limit spoke: client, key, global or backend.",
    labels: ["scope"],
  },
  translationDrops: {
    name: "signalbox_translation_drops_total",
    type: "counter",
    help: "Requests that lost a feature in translation, in the request or the answer; docs/compatibility.md and docs/api.md explain the features.",
    labels: ["feature"],
  },

  // Backends.
  backendUp: {
    name: "signalbox_backend_up",
    type: "gauge",
    help: "1 while requests may be sent to the backend.",
    labels: ["backend", "kind"],
  },
  backendHealth: {
    name: "signalbox_backend_health",
    type: "gauge",
    help: "1 for the health state that the backend is in, 0 for the others.",
    labels: ["backend", "state"],
  },
  circuitState: {
    name: "signalbox_backend_circuit_state",
    type: "gauge",
    help: "1 for the state that the backend's circuit is in, 0 for the others.",
    labels: ["backend", "state"],
  },
  circuitChanges: {
    name: "signalbox_backend_circuit_changes_total",
    type: "counter",
    help: "Changes of the circuit's state, by the state that it changed to.",
    labels: ["backend", "to"],
  },
  backendInFlight: {
    name: "signalbox_backend_requests_in_flight",
    type: "gauge",
    help: "Requests that the backend is working on.",
    labels: ["backend"],
  },
  backendAttempts: {
    name: "signalbox_backend_attempts_total",
    type: "counter",
    help: "Attempts at the backend, retries included.",
    labels: ["backend"],
  },
  backendFailures: {
    name: "signalbox_backend_failed_attempts_total",
    type: "counter",
    help: "Attempts that failed through the backend.",
    labels: ["backend"],
  },
  attemptDuration: {
    name: "signalbox_backend_attempt_duration_seconds",
    type: "histogram",
    help: "Time of an attempt at the backend, to the end of its answer. error_type is empty for a success.",
    labels: ["backend", "error_type"],
    buckets: DURATION_BUCKETS,
  },
  attemptFirstToken: {
    name: "signalbox_backend_time_to_first_token_seconds",
    type: "histogram",
    help: "Time until the first event of a stream came from the backend.",
    labels: ["backend"],
    buckets: FIRST_TOKEN_BUCKETS,
  },
  backendLatency: {
    name: "signalbox_backend_latency_seconds",
    type: "gauge",
    help: "Moving average of the time to the first byte, as least_latency sees it.",
    labels: ["backend"],
  },

  // Response cache.
  cacheEntries: {
    name: "signalbox_response_cache_entries",
    type: "gauge",
    help: "Answers in the response cache.",
    labels: [],
  },
  cacheBytes: {
    name: "signalbox_response_cache_bytes",
    type: "gauge",
    help: "Size of the answers in the response cache.",
    labels: [],
  },
  cacheEvictions: {
    name: "signalbox_response_cache_evictions_total",
    type: "counter",
    help: "Answers that made room for others.",
    labels: [],
  },

  // The gateway itself.
  buildInfo: {
    name: "signalbox_build_info",
    type: "gauge",
    help: "Always 1; the labels say what is running.",
    labels: ["version", "runtime"],
  },
  uptime: {
    name: "signalbox_uptime_seconds",
    type: "gauge",
    help: "Time since the start of the process.",
    labels: [],
  },
  openStreams: {
    name: "signalbox_open_streams",
    type: "gauge",
    help: "Streamed answers that are under way to clients.",
    labels: [],
  },
  eventLoopLag: {
    name: "signalbox_event_loop_lag_seconds",
    type: "gauge",
    help: "Longest delay of the event loop within the last ten seconds.",
    labels: [],
  },
  configVersion: {
    name: "signalbox_config_version",
    type: "gauge",
    help: "Version of the configuration that is in force.",
    labels: [],
  },
  configReloads: {
    name: "signalbox_config_reloads_total",
    type: "counter",
    help: "Reloads of the configuration file: success or failure.",
    labels: ["result"],
  },
  configReloadOk: {
    name: "signalbox_config_last_reload_successful",
    type: "gauge",
    help: "0 while the configuration file is broken and the configuration before it stays in force.",
    labels: [],
  },
  historyWrites: {
    name: "signalbox_metrics_history_snapshots_total",
    type: "counter",
    help: "Snapshots of the metrics history: success or failure.",
    labels: ["result"],
  },
  seriesDropped: {
    name: "signalbox_metrics_overflow_total",
    type: "counter",
    help: "Look-ups of label combinations that are too many and counted as (other).",
    labels: [],
  },
  residentMemory: {
    name: "process_resident_memory_bytes",
    type: "gauge",
    help: "Resident memory of the process.",
    labels: [],
  },
  heapMemory: {
    name: "process_heap_bytes",
    type: "gauge",
    help: "Memory that the heap of the runtime uses.",
    labels: [],
  },
  cpuSeconds: {
    name: "process_cpu_seconds_total",
    type: "counter",
    help: "User and system CPU time of the process.",
    labels: [],
  },
  startTime: {
    name: "process_start_time_seconds",
    type: "gauge",
    help: "Start of the process, in seconds since 1970.",
    labels: [],
  },
} as const satisfies Record<string, Instrument>;
