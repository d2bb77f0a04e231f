// GET /admin/audit: who changed what, when, and what came of it.

import { ROLES, type Role } from "../config/values/roles.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { StorageError } from "../lib/resilient-database.ts";
import {
  anything,
  count,
  described,
  integer,
  list,
  namedShape,
  oneOfTexts,
  orNull,
  schemasOf,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import type { Call } from "../server/endpoint.ts";
import type { AuditFilter, AuditStore } from "./audit-store.ts";
import { type Cell, toCsv } from "./csv.ts";
import { type AnswerWith, adminGroup, answer, toTimestamp } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { badParameter, queryOf, readNumber, readTime, timeText } from "./query.ts";

const OUTCOMES = ["done", "refused", "failed"] as const;
const MOST_ROWS = 1_000;
const MOST_CSV_ROWS = 100_000;

const AuditRecord = namedShape("AuditRecord", {
  id: count,
  time,
  name: described(orNull(text), "Of the administrator; null where no sign-in is required, and for wrong credentials."),
  role: described(orNull(oneOfTexts(...ROLES)), "Of the administrator; null for wrong credentials."),
  sign_in_method: orNull(text),
  address: orNull(text),
  method: text,
  path: text,
  operation: described(orNull(text), "The operationId of /openapi.json."),
  subject: described(orNull(text), "The name or id that it is about."),
  status: integer,
  outcome: described(oneOfTexts(...OUTCOMES), "refused: 401, 403 or 429. failed: any other error."),
  repeats: described(count, "Refused attempts of this address that the entry stands for."),
  changes: described(
    orNull(list(shape({ section: text, field: text }, { from: anything, to: anything }))),
    "Fields of the configuration, of keys and of circuits before and after, secrets masked, prompts left out.",
  ),
});

const AuditList = namedShape("AuditList", {
  entries: list(AuditRecord),
  next: described(orNull(count), "For cursor, where there are more."),
});

export type AuditRecord = ValueOf<typeof AuditRecord>;
export type AuditList = ValueOf<typeof AuditList>;

const endpoint = adminGroup("Audit", schemasOf(AuditRecord, AuditList));

export function auditRoutes({ audit }: Pick<AdminParts, "audit">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/audit", {
      id: "listAudit",
      role: "viewer",
      summary: "What administrators did, the latest first, and what was refused",
      parameters: [
        queryParameter("since", "Entries from this time on.", timeText),
        queryParameter("until", "Entries before this time.", timeText),
        queryParameter("name", "Of this administrator.", text),
        queryParameter("operation", "Of this operation, such as updateBudget.", text),
        queryParameter("outcome", "With this outcome.", oneOfTexts(...OUTCOMES)),
        queryParameter("limit", "At most so many entries.", {
          type: "integer",
          minimum: 1,
          maximum: MOST_ROWS,
          default: 100,
        }),
        queryParameter("cursor", "next of the answer before.", count),
        queryParameter("format", "csv: a table to keep (RFC 4180).", { ...oneOfTexts("json", "csv"), default: "json" }),
      ],
      errors: [404, 503],
      answers: [{ ...jsonAnswer(AuditList, "The entries; as CSV with a line for each."), types: ["text/csv"] }],
      handle(call) {
        const query = queryOf(call);
        const isCsv = chosen(query, "format", ["json", "csv"]) === "csv";
        const most = isCsv ? MOST_CSV_ROWS : MOST_ROWS;
        const limit = readNumber(query, "limit", 1) ?? (isCsv ? MOST_CSV_ROWS : 100);
        if (limit > most) throw badParameter("limit", `at most ${most}`);
        const found = read(audit(), {
          sinceMs: readTime(query, "since"),
          untilMs: readTime(query, "until"),
          name: query.get("name") ?? undefined,
          operation: query.get("operation") ?? undefined,
          outcome: chosen(query, "outcome", OUTCOMES),
          before: readNumber(query, "cursor", 0),
          limit: limit + 1,
        });
        const rows = found.slice(0, limit);
        if (isCsv) return table(call, rows) as AnswerWith<AuditList>;
        const next = found.length > limit ? (rows.at(-1)?.id ?? null) : null;
        return answer(call, { entries: rows.map(shown), next });
      },
    }),
  ];
}

type AuditRow = ReturnType<AuditStore["find"]>[number];

function chosen<const Name extends string>(
  query: URLSearchParams,
  parameter: string,
  names: readonly Name[],
): Name | undefined {
  const text = query.get(parameter);
  if (text === null) return undefined;
  const name = names.find((each) => each === text);
  if (name === undefined) throw badParameter(parameter, `one of ${names.join(", ")}`);
  return name;
}

function read(entries: AuditStore | undefined, filter: AuditFilter): AuditRow[] {
  if (entries === undefined) {
    throw new GatewayError(ERRORS.routeNotFound, "The audit is switched off: set admin.audit.enabled to true.");
  }
  try {
    return entries.find(filter);
  } catch (error) {
    if (error instanceof StorageError) throw new GatewayError(ERRORS.storageUnavailable, error.message);
    throw error;
  }
}

function shown({ atMs, signInMethod, changes, ...row }: AuditRow) {
  const told = changes === null ? null : (JSON.parse(changes) as { section: string; field: string }[]);
  return {
    ...row,
    role: row.role as Role | null,
    time: toTimestamp(atMs),
    sign_in_method: signInMethod,
    changes: told,
  };
}

const COLUMNS = [
  ...["id", "time", "name", "role", "sign_in_method", "address", "method", "path", "operation", "subject"],
  ...["status", "outcome", "repeats", "changes"],
];

function table({ headers }: Call, rows: readonly AuditRow[]) {
  const cells = rows.map((row): Cell[] => [
    ...[
      row.id,
      toTimestamp(row.atMs),
      row.name ?? "",
      row.role ?? "",
      row.signInMethod ?? "",
      row.address ?? "",
      row.method,
      row.path,
    ],
    ...[row.operation ?? "", row.subject ?? "", row.status, row.outcome, row.repeats, row.changes ?? ""],
  ]);
  return new Response(toCsv(COLUMNS, cells), {
    headers: {
      ...headers,
      "Content-Type": "text/csv; charset=utf-8; header=present",
      "Content-Disposition": 'attachment; filename="signalbox-audit.csv"',
      "X-Content-Type-Options": "nosniff",
      "Cache-Control": "no-store",
    },
  });
}
