// Every metric there is, in one list: type, name{labels} and help. docs/metrics.md shows the same list; a test compares.
// Names follow Prometheus (base units, _total) and, where they exist, the OpenTelemetry conventions for generative AI with
// their buckets.

export interface Instrument {
  type: "counter" | "gauge" | "histogram";
  name: string;
  help: string;
  labels: readonly string[];
  /** Upper bounds, without +Inf. */
  buckets?: readonly number[];
}

const DURATION_BUCKETS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST_TOKEN_BUCKETS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const TOKEN_TIME_BUCKETS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const HOOK_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const QUEUE_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 300, 1800, 7200, 86400];
const TOKEN_BUCKETS = Array.from({ length: 14 }, (_, power) => 4 ** power);

/** The labels of the OpenTelemetry conventions. */
const GEN_AI = "gen_ai_operation_name,gen_ai_request_model,backend";

export const INSTRUMENTS = {
  // Requests, in the OpenTelemetry conventions for generative AI.
  requestDuration: histogram(
    `gen_ai_server_request_duration_seconds{${GEN_AI},error_type}`,
    "Time from the arrival of a request to the end of its answer. error_type is empty for a success.",
    DURATION_BUCKETS,
  ),
  timeToFirstToken: histogram(
    `gen_ai_server_time_to_first_token_seconds{${GEN_AI}}`,
    "Time until the first byte of a streamed answer went to the client.",
    FIRST_TOKEN_BUCKETS,
  ),
  timePerOutputToken: histogram(
    `gen_ai_server_time_per_output_token_seconds{${GEN_AI}}`,
    "Time per token after the first one, of complete streamed answers.",
    TOKEN_TIME_BUCKETS,
  ),
  tokenUsage: histogram(
    `gen_ai_client_token_usage{${GEN_AI},gen_ai_token_type}`,
    "Tokens per request, input and output.",
    TOKEN_BUCKETS,
  ),

  // Requests, as the gateway sees them.
  requests: counter(
    "signalbox_requests_total{operation,model,backend,status}",
    "Finished requests by HTTP status; 499: the client left.",
  ),
  tokens: counter(
    "signalbox_tokens_total{model,backend,type}",
    "Tokens by type: input (all), output (all), and of these cache_read, cache_write, reasoning.",
  ),
  cost: counter(
    "signalbox_cost_total{model,backend}",
    "Cost of the tokens by the prices of the model metadata, in their currency.",
  ),
  routeRequests: counter(
    "signalbox_route_requests_total{route,arm,outcome}",
    "Requests of each target of a route by outcome; one that another target had to answer counts as failed.",
  ),
  routeFirstToken: histogram(
    "signalbox_route_first_token_seconds{route,arm}",
    "Time until the first byte of an answer went to the client, of requests that their first target answered.",
    FIRST_TOKEN_BUCKETS,
  ),
  routeOutputTokens: counter(
    "signalbox_route_output_tokens_total{route,arm}",
    "Output tokens of each target of a route.",
  ),
  routeCost: counter("signalbox_route_cost_total{route,arm}", "Cost of the tokens of each target of a route."),
  routeFeedback: counter(
    "signalbox_route_feedback_total{route,arm}",
    "Answers of each target of a route that clients have rated (POST /v1/feedback).",
  ),
  routeFeedbackScore: counter(
    "signalbox_route_feedback_score_total{route,arm}",
    "The sum of these scores, each from 0 to 1.",
  ),
  keyRequests: counter(
    "signalbox_key_requests_total{key,organization,outcome}",
    "Requests of each key by outcome: succeeded, refused, failed, stream_broken or client_left; with metrics.by_key.",
  ),
  keyTokens: counter(
    "signalbox_key_tokens_total{key,organization,type}",
    "Tokens of each key by type: input or output; with metrics.by_key.",
  ),
  keyCost: counter("signalbox_key_cost_total{key,organization}", "Cost of each key's tokens; with metrics.by_key."),
  retries: counter(
    "signalbox_retries_total{model,backend}",
    "Attempts that another one followed, by the model and the backend that were asked.",
  ),
  fallbacks: counter(
    "signalbox_fallbacks_total{model,reason}",
    "Requests for which another model was asked, by the reason.",
  ),
  cacheDecisions: counter(
    "signalbox_response_cache_requests_total{result}",
    "Requests by the decision of the response cache: hit, miss or bypass.",
  ),
  sharedCalls: counter(
    "signalbox_deduplicated_requests_total{model}",
    "Requests that were answered by the call of an identical one in flight.",
  ),
  refusals: counter(
    "signalbox_requests_refused_total{status,code}",
    "Requests that the gateway refused before a backend was asked, by status and code of the error.",
  ),
  rateLimitRefusals: counter(
    "signalbox_rate_limit_refusals_total{scope}",
    "Refusals by whose limit spoke: client, key, global or backend.",
  ),
  budgetRefusals: counter("signalbox_budget_refusals_total{budget}", "Requests that a budget has refused."),
  budgetSpent: gauge(
    "signalbox_budget_spent{budget,amount}",
    "What is spent in the window that goes on: cost, tokens, input_tokens, output_tokens or requests. Of a rule with per, what is spent by the one that has spent most of its limit.",
  ),
  budgetLimit: gauge("signalbox_budget_limit{budget,amount}", "What may be spent in a window."),
  notifications: counter(
    "signalbox_notifications_total{target,outcome}",
    "Events for receivers of notifications, by outcome: delivered, failed (given up after the last attempt) or dropped (the queue was full).",
  ),
  translationDrops: counter(
    "signalbox_translation_drops_total{feature}",
    "Requests that lost a feature in translation, in the request or the answer; docs/compatibility.md and docs/api.md explain the features.",
  ),

  // Backends.
  backendUp: gauge(
    "signalbox_backend_up{backend,kind}",
    "1 while the backend can be asked: enabled, healthy or not checked yet, and not held back by its circuit.",
  ),
  backendHealth: gauge(
    "signalbox_backend_health{backend,state}",
    "1 for the health state that the backend is in, 0 for the others.",
  ),
  circuitState: gauge(
    "signalbox_backend_circuit_state{backend,state}",
    "1 for the state that the backend's circuit is in, 0 for the others.",
  ),
  circuitChanges: counter(
    "signalbox_backend_circuit_changes_total{backend,to}",
    "Changes of the circuit's state, by the state that it changed to.",
  ),
  backendInFlight: gauge("signalbox_backend_requests_in_flight{backend}", "Requests that the backend is working on."),
  backendAttempts: counter("signalbox_backend_attempts_total{backend}", "Attempts at the backend, retries included."),
  backendFailures: counter(
    "signalbox_backend_failed_attempts_total{backend}",
    "Attempts that failed through the backend.",
  ),
  attemptDuration: histogram(
    "signalbox_backend_attempt_duration_seconds{backend,error_type}",
    "Time of an attempt at the backend, to the end of its answer. error_type is empty for a success.",
    DURATION_BUCKETS,
  ),
  attemptFirstToken: histogram(
    "signalbox_backend_time_to_first_token_seconds{backend}",
    "Time until the first event of a stream came from the backend.",
    FIRST_TOKEN_BUCKETS,
  ),
  backendLatency: gauge(
    "signalbox_backend_latency_seconds{backend}",
    "Moving average of the measured time to the first byte of answers.",
  ),

  // Response cache.
  cacheEntries: gauge("signalbox_response_cache_entries", "Answers in the response cache."),
  cacheBytes: gauge("signalbox_response_cache_bytes", "Size of the answers in the response cache."),
  cacheEvictions: counter("signalbox_response_cache_evictions_total", "Answers that made room for others."),
  cacheBucketUp: gauge(
    "signalbox_response_cache_l2_up",
    "1 while the bucket of the tiered response cache is used, 0 while it is left alone.",
  ),
  cacheBucketHits: counter("signalbox_response_cache_l2_hits_total", "Answers that came from the bucket."),
  cacheBucketDropped: counter(
    "signalbox_response_cache_l2_dropped_total",
    "Answers that were not written to the bucket, because too many waited or the server did not take them.",
  ),

  // KV cache index.
  kvIndexEntries: gauge("signalbox_kv_index_entries{backend}", "Blocks of prompts that the backend has in its cache."),
  kvIndexDistrusted: gauge(
    "signalbox_kv_index_distrusted{backend}",
    "1 while nothing is kept of the backend's cache, because answers have contradicted its events.",
  ),
  kvIndexBytes: gauge("signalbox_kv_index_bytes", "Memory of the index."),
  kvIndexLookups: counter(
    "signalbox_kv_index_lookups_total{result}",
    "Choices for which a prompt was looked up: hit, a backend had enough of it; miss, none had.",
  ),
  kvIndexSourceConnected: gauge(
    "signalbox_kv_index_event_sources_connected{backend}",
    "Streams of events of the backend's cache that stand.",
  ),
  kvIndexEvents: counter("signalbox_kv_index_events_total{backend}", "Events of its cache that the backend published."),
  kvIndexDropped: counter(
    "signalbox_kv_index_events_dropped_total{backend}",
    "Events that were dropped because more came than could be taken in.",
  ),

  // Redis.
  redisUp: gauge("signalbox_redis_up{use}", "1 while the Redis server is used, 0 while it is away."),
  redisUnanswered: counter(
    "signalbox_redis_unanswered_total{use}",
    "Commands that had no good answer in time, or were not sent: what the gateway did without Redis.",
  ),

  // Export to a receiver of OpenTelemetry.
  otlpUp: gauge("signalbox_otlp_up{signal}", "1 while the receiver takes the signal, 0 while it does not."),
  otlpExports: counter(
    "signalbox_otlp_exports_total{signal,result}",
    "Exports of traces and metrics, tries included: success or failure.",
  ),
  otlpDropped: counter(
    "signalbox_otlp_dropped_spans_total",
    "Spans that were not sent, because the receiver did not take them or too many waited.",
  ),

  // Hooks.
  hookCalls: counter(
    "signalbox_hook_calls_total{hook,event,verdict}",
    "Calls of hooks: pass, change, refuse, answer, repair, error, timeout, unavailable, or dropped (only the event end).",
  ),
  hookDuration: histogram(
    "signalbox_hook_duration_seconds{hook,event}",
    "How long calls of hooks took; of the pieces of a stream, their mean.",
    HOOK_BUCKETS,
  ),
  hookRestarts: counter(
    "signalbox_hook_restarts_total{hook,cause}",
    "Processes of hooks that ended and were started again: memory, hang, or crash.",
  ),

  // The queue in front of the backends.
  queueWaiting: gauge("signalbox_queue_waiting{model,class}", "Requests that wait for a slot at a backend."),
  queueWait: histogram(
    "signalbox_queue_wait_seconds{class}",
    "How long requests waited that then had a slot; those that had one at once are not counted.",
    QUEUE_BUCKETS,
  ),
  queueShed: counter(
    "signalbox_queue_shed_total{class,reason}",
    "Requests that had no slot: queue_full, too_late (said at once), waited_too_long, or owner_gone.",
  ),
  queueSlots: gauge(
    "signalbox_queue_slots{backend}",
    "Most requests at once at the backend; none where it has no limit.",
  ),
  queueInFlight: gauge("signalbox_queue_in_flight{backend}", "Requests that have a slot at the backend."),
  queueTokens: gauge("signalbox_queue_tokens_in_flight{backend}", "Expected tokens of these requests."),

  // Files.
  files: gauge("signalbox_files", "Files that are stored."),
  fileBytes: gauge("signalbox_files_bytes", "Size of the files that are stored."),
  fileUploads: counter(
    "signalbox_file_uploads_total{result}",
    "Uploads: stored, refused (what the client sent, or that it left), or failed (the storage).",
  ),

  // Batches.
  openBatches: gauge("signalbox_batches_open", "Batches that are not finished."),
  batchLines: counter(
    "signalbox_batch_lines_total{endpoint,result}",
    "Lines of batches with a result: completed or failed.",
  ),

  // Recording.
  recordings: counter(
    "signalbox_recordings_total{result}",
    "Requests that were to be recorded: kept, dropped (no memory was left), or failed (the storage).",
  ),

  // The gateway itself.
  buildInfo: gauge("signalbox_build_info{version,runtime}", "Always 1; the labels say what is running."),
  uptime: gauge("signalbox_uptime_seconds", "Time since the start of the process."),
  workers: gauge("signalbox_workers{state}", "Worker processes: starting, running, or draining."),
  workerRestarts: counter(
    "signalbox_worker_restarts_total{reason}",
    "Workers that were replaced: crash, hang, memory (server.worker_memory_limit), or request (POST /admin/workers/restart).",
  ),
  openStreams: gauge("signalbox_open_streams", "Streamed answers that are under way to clients."),
  eventLoopLag: gauge(
    "signalbox_event_loop_lag_seconds",
    "Longest delay of the event loop within the last ten seconds.",
  ),
  configVersion: gauge("signalbox_config_version", "Version of the configuration that is in force."),
  configReloads: counter(
    "signalbox_config_reloads_total{result}",
    "Reloads of the configuration file: success or failure.",
  ),
  configReloadOk: gauge(
    "signalbox_config_last_reload_successful",
    "0 while the configuration file is broken and the configuration before it stays in force.",
  ),
  historyWrites: counter(
    "signalbox_metrics_history_snapshots_total{result}",
    "Snapshots of the metrics history: success or failure.",
  ),
  requestsLost: counter(
    "signalbox_requests_unrecorded_total",
    "Requests that could not be written to the log of requests, and will not be found.",
  ),
  seriesDropped: counter(
    "signalbox_metrics_overflow_total",
    "Look-ups of label combinations that are too many and counted as (other).",
  ),
  residentMemory: gauge("process_resident_memory_bytes", "Resident memory of the process."),
  heapMemory: gauge("process_heap_bytes", "Memory that the heap of the runtime uses."),
  cpuSeconds: counter("process_cpu_seconds_total", "User and system CPU time of the process."),
  startTime: gauge("process_start_time_seconds", "Start of the process, in seconds since 1970."),
} satisfies Record<string, Instrument>;

function counter(series: string, help: string) {
  return { type: "counter" as const, ...parts(series), help };
}

function gauge(series: string, help: string) {
  return { type: "gauge" as const, ...parts(series), help };
}

function histogram(series: string, help: string, buckets: readonly number[]) {
  return { type: "histogram" as const, ...parts(series), help, buckets };
}

/** "name{label,label}", as Prometheus writes it; a metric without labels is just its name. */
function parts(series: string): Pick<Instrument, "name" | "labels"> {
  const [name = "", labels] = series.split(/[{}]/);
  return { name, labels: labels?.split(",") ?? [] };
}
