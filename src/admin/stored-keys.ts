// Changes of the keys in the key store, one by one: checked by the schema of api_keys.keys, and told as changes of the
// configuration are.

import type { KeyStore, SecretChange } from "../access/key-store.ts";
import { keyRightsSchema, type StoredKey } from "../access/stored-keys.ts";
import { estimateImpact } from "../config/change/capability.ts";
import { changesBySection, diffDocuments } from "../config/change/diff.ts";
import { MASK } from "../config/change/mask.ts";
import { mergePatch } from "../config/change/merge-patch.ts";
import { describeIssues } from "../config/compile/describe-issues.ts";
import { toJsonSchema } from "../config/schema/schema-export.ts";
import { apiKeySchema } from "../config/sections/api-keys.ts";
import { namesVariable } from "../config/values/expand.ts";
import { toFieldProblem } from "../config/values/problems.ts";
import type { Mapping } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { storageMessage } from "../lib/storage-message.ts";
import { type Call, maySeeSecrets } from "../server/endpoint.ts";
import { fitsIntoPath } from "../server/request-target.ts";
import { answer } from "./endpoint.ts";
import { storedKeyRecord } from "./key-record.ts";
import type { AdminParts } from "./parts.ts";
import { isDryRun, queryOf } from "./query.ts";
import { invalidFields, shortened } from "./refusals.ts";
import { baseVersionOf } from "./request.ts";

type StoredKeyParts = Pick<AdminParts, "store" | "keyStore" | "identify" | "clock" | "ledger" | "log" | "happenings">;

interface StoredKeyChange {
  id: string;
  before: StoredKey | undefined;
  /** Undefined: the key is removed. */
  entry: Mapping | undefined;
  secret?: string | undefined;
  /** Of the body. */
  version?: number | undefined;
  /** What was done, for the message: "was added". */
  what: string;
  write(keyStore: KeyStore): void;
}

/** A merge patch of an entry. */
interface FieldsChange {
  fields: Mapping;
  version?: number | undefined;
}

export function createStoredKeyChanges(parts: StoredKeyParts) {
  const { store, keyStore, clock, log, happenings } = parts;

  /** Throws 400 with the fields that are wrong. The secret of a key that keeps its own is not looked at. */
  function check({ id, before, entry, secret }: StoredKeyChange, call: Call): void {
    const written = { ...entry, id, ...(secret !== undefined && { key: secret }) };
    const schema = secret === undefined ? apiKeySchema.omit({ key: true, previous: true }) : apiKeySchema;
    const result = schema.safeParse(written, { reportInput: false });
    if (!result.success) {
      const found = describeIssues(result.error.issues, written, () => toJsonSchema(schema), ["api_keys", "keys", 0]);
      throw invalidFields(found.map(toFieldProblem));
    }
    const idProblem = before === undefined ? problemOfId(id) : undefined;
    if (idProblem !== undefined) throw invalidFields([{ field: "id", message: idProblem }]);
    requireUsualSize(entry ?? {});
    if (result.data.scopes.includes("admin") && !maySeeSecrets(call.administrator)) {
      const message =
        "admin cannot be given without credentials of the role admin, nor such a key be changed; do it in the configuration file";
      throw invalidFields([{ field: "scopes", message }]);
    }
    if (secret === undefined) return;
    if (secret === MASK || namesVariable(secret)) {
      const message = "is taken to the letter: give the secret itself, or leave it out, and one is made";
      throw invalidFields([{ field: "key", message }]);
    }
    const keys = store.current.settings.api_keys.keys;
    const isTaken = keys.some(({ key, previous }) => key === secret || previous?.key === secret);
    const known = isTaken ? "in use" : store.isRevokedKey(secret) ? "revoked" : keyStore.knows(secret);
    if (known === "in use")
      throw invalidFields([{ field: "key", message: "is the secret of a key already; give another one" }]);
    if (known === undefined) return;
    const message = "was revoked and is never valid again; give another secret";
    throw invalidFields([{ field: "key", message }]);
  }

  const shown = (key: StoredKey) => storedKeyRecord(key, { nowMs: clock.wallTime(), ledger: parts.ledger() });

  function record(id: string, entry: Mapping, before: StoredKey | undefined) {
    const rights = keyRightsSchema().parse(entry);
    const next = { id, entry, rights, version: (before?.version ?? 0) + 1, previousUntilMs: before?.previousUntilMs };
    return shown(next);
  }

  /** Checks a change, makes it unless it is a dry run, and says what is different. */
  function make(call: Call, change: StoredKeyChange) {
    const { id, before, entry, secret, version, what, write } = change;
    const current = before?.version ?? store.current.version;
    const asked = baseVersionOf(call, version, current);
    if (asked !== undefined && asked !== current) throw conflict(before, asked, current);
    if (entry !== undefined) check(change, call);
    const dryRun = isDryRun(queryOf(call));
    const from = listOf(id, before?.entry, before && { key: "-" });
    const to = listOf(id, entry, { key: secret ?? "-" });
    const changes = diffDocuments(from, to);
    if (!dryRun) {
      if (keyStore.problem !== undefined) throw notKept(keyStore.problem);
      try {
        write(keyStore);
      } catch (error) {
        throw notKept(storageMessage(error));
      }
      call.deed = { subject: id, changes };
      const { administrator } = call;
      log.info({ key: id, ...(administrator?.name !== undefined && { user: administrator.name }) }, `API key ${what}`);
      happenings.accessChanged();
    }
    const now = dryRun ? undefined : keyStore.find(id);
    const key = now === undefined ? entry && record(id, entry, before) : shown(now);
    const [fields = {}] = Object.values(changesBySection(changes));
    const body = {
      success: true as const,
      message: dryRun ? "Nothing was changed: this is a dry run." : `Key '${shortened(id)}' ${what}.`,
      version: key?.version ?? before?.version ?? 1,
      applied: !dryRun,
      ...(dryRun && { dry_run: true as const, estimated_impact: estimateImpact(changes), changes: fields }),
      warnings: [] as string[],
    };
    return { body, key, dryRun };
  }

  function changed(call: Call, change: StoredKeyChange & { entry: Mapping }, madeSecret?: string, status = 200) {
    const { body, key, dryRun } = make(call, change);
    const secret = madeSecret !== undefined && !dryRun ? { secret: madeSecret } : {};
    const told = { ...body, key: key as NonNullable<typeof key>, ...secret };
    return answer(call, told, { status: dryRun ? 200 : status, version: body.version });
  }

  function changeFields(call: Call, before: StoredKey, { fields, version, what }: FieldsChange & { what: string }) {
    const { id } = before;
    const { id: given = id, key, previous, ...rest } = fields;
    if (given !== id) {
      throw invalidFields([{ field: "id", message: "cannot be changed: what the key owns belongs to it" }]);
    }
    const secret = key === undefined || key === null || key === MASK ? undefined : (key as string);
    const entry = mergePatch(before.entry, rest) as Mapping;
    const endsPrevious = previous === null;
    const write = (keys: KeyStore) => keys.change(id, entry, { secret, endsPrevious });
    return make(call, { id, before, entry, secret, version, what, write });
  }

  return {
    /** `made`: the gateway has made the secret, and shows it in the answer. */
    create(call: Call, fields: Mapping, secret: { secret: string; made: boolean; version: number | undefined }) {
      const { id: given, key: _, ...rest } = mergePatch({}, fields) as Mapping;
      const id = given ?? parts.identify({ key: String(secret.secret) });
      if (given === undefined && keyStore.find(id as string) !== undefined) {
        const message = `There is a key '${shortened(id as string)}' already, as this one would be called; give it an id.`;
        throw new GatewayError(ERRORS.conflict, message, { param: "id" });
      }
      const change = {
        id: id as string,
        before: undefined,
        entry: rest,
        secret: secret.secret,
        version: secret.version,
        what: "was added",
        write: (keys: KeyStore) => keys.add(id as string, rest, secret.secret),
      };
      return changed(call, change, secret.made ? secret.secret : undefined, 201);
    },

    change: changeFields,

    update(call: Call, before: StoredKey, change: FieldsChange) {
      const { body, key } = changeFields(call, before, { ...change, what: "was changed" });
      return answer(call, { ...body, key: key as NonNullable<typeof key> }, { version: body.version });
    },

    rotate(
      call: Call,
      before: StoredKey,
      {
        secret,
        made,
        overlapMs,
        version,
      }: { secret: string; made: boolean; overlapMs: number; version?: number | undefined },
    ) {
      const { id, entry } = before;
      const nowMs = clock.wallTime();
      const secrets: SecretChange = { secret, ...(overlapMs > 0 && { previousUntilMs: nowMs + overlapMs }) };
      const write = (keys: KeyStore) => keys.change(id, entry, secrets);
      return changed(
        call,
        { id, before, entry, secret, version, what: "has a new secret", write },
        made ? secret : undefined,
      );
    },

    remove(call: Call, before: StoredKey) {
      const { id } = before;
      const removed = shown(before);
      const write = (keys: KeyStore) => keys.remove(id);
      const { body } = make(call, { id, before, entry: undefined, what: "was removed", write });
      return answer(call, { ...body, removed_key: removed }, { version: body.version });
    },
  };
}

/** Thousands of keys are in memory at the same time, and users stand in lines of the log. */
const LONGEST_ENTRY = 32_768;
const LONGEST_NAME = 1_024;

/** Throws 400. */
function requireUsualSize(entry: Mapping): void {
  for (const field of ["user_id", "organization_id"]) {
    if (String(entry[field] ?? "").length <= LONGEST_NAME) continue;
    throw invalidFields([{ field, message: `must have at most ${LONGEST_NAME} characters` }]);
  }
  if (JSON.stringify(entry).length <= LONGEST_ENTRY) return;
  const message = `are so many that the key has more than ${LONGEST_ENTRY} characters as JSON; name them by patterns with *`;
  throw invalidFields([{ field: "models", message }]);
}

const LONGEST_ID = 256;

/** The schema of the configuration takes any text; the API has to be able to ask for it. */
function problemOfId(id: string): string | undefined {
  if (id.length > LONGEST_ID) return `must have at most ${LONGEST_ID} characters`;
  if (!fitsIntoPath(id)) return "must not hold control characters, or '.' or '..' between slashes: no path can name it";
  if (id.endsWith(":tokens")) return "must not end in ':tokens', which names the budget behind a token_limit";
  return undefined;
}

function conflict(before: StoredKey | undefined, asked: number, current: number): GatewayError {
  const whose = before === undefined ? "the configuration" : `the key '${shortened(before.id)}'`;
  return new GatewayError(
    ERRORS.conflict,
    `The change was made for version ${asked} of ${whose}; the current version is ${current}.`,
    { details: { expected_version: asked, current_version: current } },
  );
}

function listOf(id: string, entry: Mapping | undefined, secret: Mapping | undefined): Mapping {
  return { api_keys: { keys: entry === undefined ? [] : [{ ...entry, id, ...secret }] } };
}

function notKept(reason: string): GatewayError {
  return new GatewayError(ERRORS.changesUnavailable, `The change could not be kept: ${reason}.`);
}
