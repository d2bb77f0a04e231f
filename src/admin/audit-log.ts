// Writes the audit: one entry for each answered request of the admin API that changes something, shows secrets, exports, or is
// refused.

import { clientGroup } from "../access/client-address.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import { storageMessage } from "../lib/storage-message.ts";
import type { Answering, Call, Deed } from "../server/endpoint.ts";
import { type AuditEntry, type AuditOutcome, createAuditStore } from "./audit-store.ts";

interface AuditLogParts {
  /** At the start; the path and the switch need a restart. */
  settings: Settings["admin"]["audit"];
  /** Absolute. */
  path: string;
  clock: Clock;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

const REFUSALS: ReadonlySet<number> = new Set([401, 403, 429]);
/** Refused attempts of one address that get an entry each within a minute. */
const MOST_REFUSED = 5;
/** Addresses that are told apart in a minute. */
const MOST_ADDRESSES = 100;
const REFUSED_WINDOW_MS = 60_000;
const MAX_TEXT = 500;
const MAX_CHANGES = 16_384;
/** Its values are prompts. */
const PROMPTS = "global_prompts";

// Long because these functions share what is counted of refused attempts.
export function createAuditLog({ settings, path, clock, log }: AuditLogParts) {
  const { enabled, max_bytes: maxBytes } = settings;
  const audit = enabled ? createAuditStore({ path, maxBytes, log }) : undefined;
  /** By address, since the last minute began. */
  const refused = new Map<string, { count: number; rest: AuditEntry | undefined }>();
  let others: AuditEntry | undefined;
  let problem: string | undefined;
  let retentionMs = settings.retention;

  const timer =
    audit &&
    setInterval(() => {
      sum();
      forget();
    }, REFUSED_WINDOW_MS);

  function write(entry: AuditEntry): void {
    const { atMs: _, changes: __, ...told } = entry;
    log.info(told, "audit");
    try {
      audit?.add(entry);
      problem = undefined;
    } catch (error) {
      if (problem === undefined) log.warn({ path, reason: storageMessage(error) }, "the audit cannot be written");
      problem = `${path}: ${storageMessage(error)}`;
    }
  }

  /** A flood of attempts becomes one entry of each address, and one of all further addresses, a minute. */
  function writeRefused(entry: AuditEntry): void {
    const key = entry.address === null ? "unix" : clientGroup(entry.address);
    const known = refused.get(key);
    if (known === undefined && refused.size >= MOST_ADDRESSES) {
      others = { ...entry, address: null, repeats: (others?.repeats ?? 0) + 1 };
      return;
    }
    const seen = known ?? { count: 0, rest: undefined };
    refused.set(key, seen);
    if (++seen.count <= MOST_REFUSED) write(entry);
    else seen.rest = { ...entry, repeats: (seen.rest?.repeats ?? 0) + 1 };
  }

  /** What is left of a minute. */
  function sum(): void {
    for (const { rest } of refused.values()) if (rest !== undefined) write(rest);
    if (others !== undefined) write(others);
    refused.clear();
    others = undefined;
  }

  function forget(): void {
    try {
      audit?.forget(clock.wallTime() - retentionMs);
    } catch {
      // Tried again in a minute; writing tells of a problem.
    }
  }

  return {
    /** Undefined: it is switched off. */
    entries: audit,
    get problem(): string | undefined {
      return problem;
    },
    /** A request of the admin API has its answer. */
    answered(call: Call, endpoint: (Answering & { id?: string }) | undefined, response: Response): void {
      if (audit === undefined || endpoint?.access !== "admin") return;
      const { status } = response;
      const { request, context, administrator } = call;
      const outcome: AuditOutcome = REFUSALS.has(status) ? "refused" : status < 400 ? "done" : "failed";
      // A request without Host has no whole URL.
      const query = URL.parse(request.url)?.searchParams ?? new URLSearchParams();
      if (outcome !== "refused" && !isTold(request.method, query)) return;
      const { changes, subject = Object.values(call.parameters)[0] } = call.deed ?? {};
      const entry: AuditEntry = {
        atMs: clock.wallTime(),
        name: administrator?.name ?? null,
        role: administrator?.role ?? null,
        signInMethod: administrator?.method ?? null,
        address: context.peerAddress() ?? null,
        method: request.method,
        path: context.path.slice(0, MAX_TEXT),
        operation: endpoint.id ?? null,
        subject: subject?.slice(0, MAX_TEXT) ?? null,
        ...{ status, outcome, repeats: 1, changes: changes === undefined ? null : textOf(changes) },
      };
      if (outcome === "refused") writeRefused(entry);
      else write(entry);
    },
    follow({ settings: next }: { settings: Settings }): void {
      retentionMs = next.admin.audit.retention;
      if (audit === undefined) return;
      audit.maxBytes = next.admin.audit.max_bytes;
      forget();
    },
    stop(): void {
      clearInterval(timer);
      sum();
      audit?.close();
    },
  };
}

/** Reads are not, but for those of secrets and exports. */
function isTold(method: string, query: URLSearchParams): boolean {
  if (method !== "GET" && method !== "HEAD") return true;
  return query.has("include_sensitive") || query.get("format") === "csv";
}

/** Their secrets are masked already; prompts and very long values are left out. */
function textOf(fields: NonNullable<Deed["changes"]>): string {
  const shown = fields.map(({ section, field, from, to }) =>
    section === PROMPTS ? { section, field } : { section, field, from, to },
  );
  const text = JSON.stringify(shown);
  if (text.length <= MAX_CHANGES) return text;
  const names = JSON.stringify(
    fields.slice(0, 100).map(({ section, field }) => ({ section, field: field.slice(0, 100) })),
  );
  return names;
}
