// What every admin endpoint has in common: it stands behind the admin door, and its answers are not kept by anyone.

import { describeSection } from "../config/change/capability.ts";
import type { Change } from "../config/change/change.ts";
import type { Role } from "../config/values/roles.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { anything, type Schema, type Schemas, text } from "../openapi/json-schema.ts";
import {
  type Body,
  type DescribedAnswer,
  type DescribedEndpoint,
  jsonAnswer,
  type Parameter,
  queryParameter,
  type Tag,
} from "../openapi/operation.ts";
import { type Administrator, type Call, type Method, maySeeSecrets } from "../server/endpoint.ts";
import type { ParameterOf } from "../server/path-pattern.ts";
import { requireRole } from "./missing-role.ts";
import type { AdminPath } from "./paths.ts";
import { refuseOtherParameters } from "./query.ts";
import { unknownSection } from "./refusals.ts";
import { createFieldsReader, type Fields, IF_MATCH_PATTERN, readBody } from "./request.ts";

declare const BODY: unique symbol;

/** The type of the body, for the compiler only: an endpoint must answer as its declaration says. */
export interface AnswerWith<out Value> extends Response {
  readonly [BODY]: Value;
}

/** An endpoint that declares no JSON may return any response. */
type AnsweredCall<Value> = unknown extends Value ? Response : AnswerWith<Value>;

/** Declares an admin endpoint; the rest is the same for all of them, or follows from it. */
interface AdminDeclaration<Path extends string, Sent, Value>
  extends Pick<DescribedEndpoint, "id" | "summary" | "description" | "variants"> {
  /** The lowest role that may use it; "guest": callers that have not signed in. */
  role: Role | "guest";
  answers: readonly DescribedAnswer<Value>[];
  /** A request with a query parameter that is not among them is refused. */
  parameters?: readonly Parameter[];
  /** Query parameters that it does not name are passed over: another server adds them. */
  takesOtherParameters?: true;
  /** Read strictly by its schema, but for one that is checked later (`isChecked: false`) and only parsed here. */
  body?: Body<Sent> & { isChecked?: false; maxBytes?: number };
  /** It makes a version of the configuration, and is refused if it was made for an older one. */
  changes?: true;
  /** Statuses of errors besides those that follow from the rest. */
  errors?: readonly number[];
  /** `read` reads the body. */
  handle(
    call: Call<ParameterOf<Path>>,
    read: () => Promise<Fields<NoInfer<Sent>>>,
  ): AnsweredCall<NoInfer<Value>> | Promise<AnsweredCall<NoInfer<Value>>>;
}

/** Unknown parameters, no credentials or wrong ones, not allowed, too many attempts, a bug. */
const OF_ANY = [400, 401, 403, 429, 500];
const OF_A_PARAMETER = [404];
const OF_A_BODY = [408, 413];
const OF_A_CHANGE = [409, 503];

/** For endpoints of one group, which name those schemas. Each has a method and a path, such as "GET /admin/keys/{id}". */
export function adminGroup(tag: Tag, schemas: Schemas) {
  return <Path extends AdminPath, Sent, Value>(
    place: `${Method} ${Path}`,
    declaration: AdminDeclaration<Path, Sent, Value>,
  ): DescribedEndpoint => {
    const [method, path] = place.split(" ") as [Method, Path];
    const {
      role,
      parameters = [],
      takesOtherParameters = false,
      body,
      changes = false,
      errors = [],
      handle,
      ...rest
    } = declaration;
    const read = readerOf(body);
    const known = parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name);
    return {
      ...rest,
      method,
      path,
      tag,
      schemas,
      access: "admin",
      ...(role === "guest" ? { isForGuests: true } : { role }),
      isWatched: method === "GET",
      parameters: changes ? [...parameters, ifMatch] : parameters,
      ...(body !== undefined && { body }),
      errors: [
        ...OF_ANY,
        ...(path.includes("{") ? OF_A_PARAMETER : []),
        ...(body !== undefined ? OF_A_BODY : []),
        ...(changes ? OF_A_CHANGE : []),
        ...errors,
      ],
      handle(call) {
        if (!takesOtherParameters) refuseOtherParameters(call, known);
        return handle(call as Call<ParameterOf<Path>>, () => read(call));
      },
    };
  };
}

function readerOf<Sent>(body: AdminDeclaration<string, Sent, unknown>["body"]) {
  const { schema = anything as Schema<Sent>, isChecked = true, maxBytes } = body ?? {};
  if (isChecked) return createFieldsReader(schema, maxBytes);
  return readBody as (call: Call) => Promise<Fields<Sent>>;
}

const ifMatch: Parameter = {
  name: "If-Match",
  in: "header",
  description: 'The version that the change was made for, such as "3"; 409 if it is no longer the current one.',
  schema: { ...text, pattern: IF_MATCH_PATTERN },
};

export const dryRun = queryParameter("dry_run", "true: everything is checked, and nothing changed.", {
  type: "boolean",
  default: false,
});

/** With the version of the configuration as ETag. */
export function versioned<Value>(schema: Schema<Value>, description: string, status = 200): DescribedAnswer<Value> {
  return { ...jsonAnswer(schema, description, status), headers: ["ETag"] };
}

/** With the version of the configuration as ETag, which If-Match takes. */
export function answer<const Body>(
  { headers }: Call,
  body: Body,
  options: { status?: number; version?: number } = {},
): AnswerWith<Body> {
  const { status = 200, version } = options;
  return Response.json(body, {
    status,
    headers: { ...headers, "Cache-Control": "no-store", ...(version !== undefined && { ETag: `"${version}"` }) },
  }) as AnswerWith<Body>;
}

/** As answer(), for a body that is JSON text already. */
export function answerText<Body>({ headers }: Call, body: string): AnswerWith<Body> {
  return new Response(body, {
    headers: { ...headers, "Content-Type": "application/json", "Cache-Control": "no-store" },
  }) as AnswerWith<Body>;
}

export function toTimestamp(atMs: number): string {
  return new Date(atMs).toISOString();
}

/** The author of a change, for the history and for the rules on what the change may bring in. */
export function authorOf({ administrator }: Call, source: string, description: string) {
  return { source, user: administrator?.name, description, elevated: maySeeSecrets(administrator) };
}

/** For the audit; a change that was not made, as by a dry run, is none. */
export function noteChange(call: Call, { applied, changes }: Pick<Change, "applied" | "changes">): void {
  if (applied) call.deed = { ...call.deed, changes };
}

/** Throws 403 for an administrator who may not see secrets. */
export function requireElevated(call: Call): Administrator {
  const { administrator } = call;
  if (administrator !== undefined && maySeeSecrets(administrator)) return administrator;
  requireRole(call, "admin");
  throw new GatewayError(
    ERRORS.forbidden,
    "include_sensitive needs elevated permission: an admin authentication (admin.auth.method), not the method none.",
    { param: "include_sensitive" },
  );
}

/** Names of sections from a request; throws 404 for the first that there is not. */
export function requireSections(names: readonly string[] = []): void {
  const unknown = names.find((name) => describeSection(name) === undefined);
  if (unknown !== undefined) throw unknownSection(unknown);
}
