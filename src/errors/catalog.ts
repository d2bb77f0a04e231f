// Every error that Signalbox itself answers with: HTTP status, type and code (docs/api.md).
// Clients switch on string codes, so a condition with a known OpenAI code carries that; the others carry the status.

export interface ErrorDefinition {
  status: number;
  type: string;
  code: string | number;
}

export const ERRORS = {
  invalidJson: { status: 400, type: "invalid_request_error", code: "invalid_json" },
  invalidRequest: { status: 400, type: "invalid_request_error", code: "invalid_value" },
  validation: { status: 400, type: "validation_error", code: 400 },
  missingParameter: { status: 400, type: "invalid_request_error", code: "missing_required_parameter" },
  malformedFileId: { status: 400, type: "invalid_request_error", code: "file_resolution_failed" },
  unsupportedOperation: { status: 400, type: "invalid_request_error", code: "unsupported_operation" },
  unsupportedModel: { status: 400, type: "invalid_request_error", code: "unsupported_model" },
  unsupportedContent: { status: 400, type: "invalid_request_error", code: "unsupported_content" },
  invalidImage: { status: 400, type: "invalid_request_error", code: "invalid_image" },
  imageTooLarge: { status: 400, type: "invalid_request_error", code: "image_too_large" },
  imageNotSquare: { status: 400, type: "invalid_request_error", code: "image_not_square" },
  dimensionMismatch: { status: 400, type: "invalid_request_error", code: "dimension_mismatch" },
  maskWithoutAlpha: { status: 400, type: "invalid_request_error", code: "mask_without_alpha" },
  invalidApiKey: { status: 401, type: "authentication_error", code: "invalid_api_key" },
  expiredApiKey: { status: 401, type: "authentication_error", code: "expired_api_key" },
  forbidden: { status: 403, type: "permission_error", code: "forbidden" },
  missingScope: { status: 403, type: "permission_error", code: "insufficient_scope" },
  modelNotAllowed: { status: 403, type: "permission_error", code: "model_not_allowed" },
  routeNotFound: { status: 404, type: "not_found", code: 404 },
  modelNotFound: { status: 404, type: "model_not_found", code: "model_not_found" },
  previousResponseNotFound: { status: 404, type: "invalid_request_error", code: "previous_response_not_found" },
  itemNotFound: { status: 404, type: "invalid_request_error", code: "item_not_found" },
  conversationNotFound: { status: 404, type: "invalid_request_error", code: "conversation_not_found" },
  fileNotFound: { status: 404, type: "invalid_request_error", code: "file_resolution_failed" },
  methodNotAllowed: { status: 405, type: "method_not_allowed", code: 405 },
  requestTimeout: { status: 408, type: "request_timeout", code: 408 },
  conflict: { status: 409, type: "conflict", code: 409 },
  payloadTooLarge: { status: 413, type: "payload_too_large", code: 413 },
  rangeNotSatisfiable: { status: 416, type: "invalid_request_error", code: 416 },
  importInvalid: { status: 422, type: "validation_error", code: 422 },
  rateLimited: { status: 429, type: "rate_limit_exceeded", code: "rate_limit_exceeded" },
  budgetExceeded: { status: 429, type: "insufficient_quota", code: "insufficient_quota" },
  internal: { status: 500, type: "internal_error", code: 500 },
  backendConnection: { status: 502, type: "backend_connection_error", code: 502 },
  invalidBackendResponse: { status: 502, type: "invalid_backend_response", code: 502 },
  backendError: { status: 502, type: "backend_error", code: 502 },
  noBackends: { status: 503, type: "service_unavailable", code: "no_backends_available" },
  allBackendsUnhealthy: { status: 503, type: "service_unavailable", code: "all_backends_unhealthy" },
  bodiesExhausted: { status: 503, type: "service_unavailable", code: "bodies_exhausted" },
  controlPlaneUnavailable: { status: 503, type: "service_unavailable", code: "control_plane_unavailable" },
  changesUnavailable: { status: 503, type: "service_unavailable", code: "changes_unavailable" },
  eventsUnavailable: { status: 503, type: "service_unavailable", code: "events_unavailable" },
  storageFull: { status: 503, type: "service_unavailable", code: "storage_full" },
  storageUnavailable: { status: 503, type: "service_unavailable", code: "storage_unavailable" },
  tokenKeysUnavailable: { status: 503, type: "service_unavailable", code: "token_keys_unavailable" },
  circuitOpen: { status: 503, type: "circuit_breaker_open", code: "circuit_breaker_open" },
  allFallbacksExhausted: { status: 503, type: "all_fallbacks_exhausted", code: "all_fallbacks_exhausted" },
  backendTimeout: { status: 504, type: "backend_timeout", code: 504 },
} as const satisfies Record<string, ErrorDefinition>;
