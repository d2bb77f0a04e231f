// What a request brings or names besides text, before a backend is looked for: files and links are checked the same way in
// every format, whatever the backend is, and the id of a file that is kept here gives way to its content.

import { ownerOf } from "../access/owner.ts";
import { conventionsOf, type Operation } from "../backends/operations.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError, unknownFile } from "../errors/gateway-error.ts";
import { type FileStore, type FilesInUse, isFileId, type StoredFile } from "../files/file-store.ts";
import type { JsonObject } from "../lib/json.ts";
import type { Logger } from "../logging/logger.ts";
import { checkGivenData } from "../media/given-data.ts";
import { checkLink, type OpenHosts } from "../media/links.ts";
import { isPlainText, refused, sniffMediaType } from "../media/media-types.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ModelRequest } from "../pipeline/model-request.ts";
import { type Attachment, type FileContent, partAt, withPart } from "../protocols/attachments.ts";
import { clientProtocol } from "../protocols/registry.ts";
import type { Call } from "../server/endpoint.ts";
import type { BodyReader } from "../server/read-body.ts";

export interface AttachmentParts {
  /** Where links may lead though it is not public. */
  openHosts: OpenHosts;
  files: FilesInUse;
  bodies: Pick<BodyReader, "hold">;
  isServed(model: string): boolean;
  /** True if a backend of the model, available or not, may hold files that are named by their ids alone. */
  keepsFiles(model: string, operation: Operation): boolean;
  /** Every model that may answer: of a route all its targets, and the models of fallback chains. */
  modelsBehind(context: RequestContext, name: string): readonly string[];
  log: Pick<Logger, "warn">;
}

/** Limits of one request, described in docs/files.md. */
const MAX_REFERENCES = 20;
const MAX_INJECTED_BYTES = 10 * 1024 * 1024;
/** Base64 as a text, and as the bytes of the body that is sent. */
const HELD_PER_BYTE = (2 * 4) / 3;

/**
 * Returns the function that arranges the requests of an endpoint. It returns the request itself, without a promise, where there
 * is nothing to do; it throws 400 and 404 with the field.
 */
export function arrangeAttachments(
  operation: Operation,
  parts: AttachmentParts,
): (call: Call, asked: ModelRequest) => ModelRequest | Promise<ModelRequest> {
  const { attachments: read } = clientProtocol(conventionsOf(operation));
  if (read === undefined) return (_call, asked) => asked;
  return (call, asked) => {
    const attachments = read(asked.body.value);
    return attachments.length === 0 ? asked : arrange(call, asked, attachments, parts);
  };
}

function arrange(
  call: Call,
  asked: ModelRequest,
  attachments: readonly Attachment[],
  parts: AttachmentParts,
): ModelRequest | Promise<ModelRequest> {
  let references: Attachment[] | undefined;
  for (const attachment of attachments) {
    const { kind, value, param } = attachment;
    if (kind === "link") checkLink(value, param, parts.openHosts);
    else if (kind === "data") checkGivenData(attachment);
    else {
      references ??= [];
      checkReference(attachment, references.length);
      references.push(attachment);
    }
  }
  return references === undefined ? asked : withFiles(call, asked, references, parts);
}

function checkReference({ value, param }: Attachment, before: number): void {
  if (before >= MAX_REFERENCES) throw refused(param, `a request may name at most ${MAX_REFERENCES} files by their id.`);
  if (isFileId(value)) return;
  const message = `${param}: expected the id of a file, such as "file-abc123".`;
  throw new GatewayError(ERRORS.malformedFileId, message, { param });
}

type Found = Attachment & { file: StoredFile };

async function withFiles(
  call: Call,
  asked: ModelRequest,
  references: readonly Attachment[],
  parts: AttachmentParts,
): Promise<ModelRequest> {
  const { context } = call;
  const owner = ownerOf(context.caller);
  // A file that was uploaded without a key, before files required one, belongs to no caller then.
  const mayHaveFiles = context.caller !== undefined || !context.settings.files.require_key;
  const store = mayHaveFiles ? await parts.files() : undefined;
  const found: Found[] = [];
  let unknown: string | undefined;
  let totalBytes = 0;
  for (const reference of references) {
    const file = await store?.find(owner, reference.value);
    if (file === undefined) {
      unknown ??= reference.param;
      continue;
    }
    totalBytes += file.bytes;
    if (totalBytes > MAX_INJECTED_BYTES) {
      const megabytes = MAX_INJECTED_BYTES / (1024 * 1024);
      throw refused(reference.param, `the files of a request may have at most ${megabytes} MB together.`);
    }
    found.push({ ...reference, file });
  }
  if (unknown !== undefined) checkHolder(call, asked, unknown, parts);
  const request = unknown === undefined ? asked : { ...asked, foreignFile: unknown };
  if (store === undefined || found.length === 0) return request;
  const injectedBytes = Math.ceil(totalBytes * HELD_PER_BYTE);
  parts.bodies.hold(context, injectedBytes, context.settings);
  return { ...request, injectedBytes, body: request.body.with(await changes(asked, found, store)) };
}

/** An unknown id may be a vendor's file. If no vendor that keeps files can be asked, the file does not exist. */
function checkHolder(
  { context }: Call,
  { model, operation }: ModelRequest,
  param: string,
  parts: AttachmentParts,
): void {
  const models = parts.modelsBehind(context, model).filter(parts.isServed);
  // If no backend serves the model yet, the selection of a candidate decides later.
  if (models.length > 0 && !models.some((name) => parts.keepsFiles(name, operation))) throw unknownFile(param);
  const message = "a file that is not kept here is left to a backend that may hold it";
  parts.log.warn({ request_id: context.id, model, field: param }, message);
}

/** The members of the body that change. */
async function changes(
  { operation, body }: ModelRequest,
  found: readonly Found[],
  store: FileStore,
): Promise<JsonObject> {
  const { withFile } = clientProtocol(conventionsOf(operation));
  const contents = new Map<string, FileContent>();
  let { value } = body;
  const members: JsonObject = {};
  for (const { file, at, param } of found) {
    let content = contents.get(file.id);
    if (content === undefined) {
      const bytes = await store.read(file);
      content = { filename: file.filename, mediaType: typeOf(bytes, param), bytes };
      contents.set(file.id, content);
    }
    const part = withFile?.(partAt(value, at), content, param);
    if (part === undefined) continue;
    value = withPart(value, at, part);
    const [member] = at as [string];
    members[member] = value[member];
  }
  return members;
}

/** By the content, whatever was said when the file was uploaded. */
function typeOf(bytes: Uint8Array, param: string): string {
  if (bytes.length === 0) throw refused(param, "the file is empty.");
  const mediaType = sniffMediaType(bytes) ?? (isPlainText(bytes) ? "text/plain" : undefined);
  if (mediaType !== undefined) return mediaType;
  throw refused(param, "the content of the file is neither a PDF, nor a PNG, JPEG, GIF or WebP image, nor plain text.");
}
