// A form with one large file, read as it arrives: the file's bytes go on piece by piece, and no more is asked of the client
// before they were taken. Memory is that of one piece and of the few texts around the file.

import { ERRORS } from "../errors/catalog.ts";
import { clientLeft, GatewayError } from "../errors/gateway-error.ts";
import { FormFields } from "../lib/form-fields.ts";
import type { JsonObject } from "../lib/json.ts";
import { MultipartReader, type MultipartReceiver } from "../lib/multipart.ts";
import { MultipartFault } from "../lib/multipart-fault.ts";
import type { PartHead } from "../lib/multipart-head.ts";
import { bodyPieces, type PiecesOptions } from "./body-pieces.ts";
import { formBoundary, formRefusal } from "./form-refusal.ts";

export interface UploadTarget {
  /** Waited for where it is a promise; what it throws ends the upload. The bytes are the target's only until then. */
  write(piece: Uint8Array): void | Promise<void>;
}

export interface Upload {
  /** Name -> text, or a list of texts where a field repeats. */
  fields: JsonObject;
  /** Undefined where the form has none. Its content went to the target. */
  file: UploadedFile | undefined;
}

interface UploadedFile extends PartHead {
  filename: string;
  bytes: number;
}

const MAX_TEXT_BYTES = 64 * 1024;
/** Limit of all texts of a form: many uploads may be under way. */
const MAX_TEXTS_BYTES = 256 * 1024;

/**
 * Resolves when the form has come as a whole. Throws and rejects with GatewayError: 400 for what is no form with at most
 * one file, 408 for a client that pauses too long, 413, and what the target throws. What was not read then still can be.
 */
export async function readUpload(request: Request, options: PiecesOptions, target: UploadTarget): Promise<Upload> {
  const form = new UploadForm();
  const parser = new MultipartReader(formBoundary(request), form);
  try {
    for await (const bytes of bodyPieces(request, options)) {
      parser.push(bytes);
      for (const piece of form.takePieces()) {
        const writing = target.write(piece);
        if (writing instanceof Promise) await writing;
      }
    }
    parser.end();
  } catch (error) {
    throw request.signal.aborted ? clientLeft() : formRefusal(error);
  }
  return { fields: form.fields.toObject(), file: form.file };
}

/** Collects the parts of the form. */
class UploadForm implements MultipartReceiver {
  readonly fields = new FormFields();
  file: UploadedFile | undefined;
  #pieces: Uint8Array[] = [];
  /** Name of the text that is being read; undefined within the file. */
  #name: string | undefined;
  #text: Uint8Array | undefined;
  #textBytes = 0;
  #allTextBytes = 0;

  /** Takes the pieces of the file that came since the last call. */
  takePieces(): readonly Uint8Array[] {
    const pieces = this.#pieces;
    if (pieces.length > 0) this.#pieces = [];
    return pieces;
  }

  part(head: PartHead): void {
    const { filename, name } = head;
    this.#name = filename === undefined ? name : undefined;
    this.#textBytes = 0;
    if (filename === undefined) return;
    if (this.file !== undefined) {
      throw new GatewayError(ERRORS.invalidRequest, `${name.slice(0, 64)}: the form has more than one file.`, {
        param: name.slice(0, 64),
      });
    }
    this.file = { ...head, filename, bytes: 0 };
  }

  data(bytes: Uint8Array): void {
    if (this.#name === undefined) {
      (this.file as UploadedFile).bytes += bytes.length;
      this.#pieces.push(bytes);
      return;
    }
    this.#allTextBytes += bytes.length;
    if (this.#textBytes + bytes.length > MAX_TEXT_BYTES || this.#allTextBytes > MAX_TEXTS_BYTES) {
      const shown = this.#name.slice(0, 64);
      const limits = `${MAX_TEXT_BYTES} bytes, or the texts of the form together than ${MAX_TEXTS_BYTES}`;
      throw new MultipartFault("notText", `${shown}: is larger than ${limits}; a file has a filename.`, shown);
    }
    this.#text ??= new Uint8Array(MAX_TEXT_BYTES);
    this.#text.set(bytes, this.#textBytes);
    this.#textBytes += bytes.length;
  }

  partEnd(): void {
    if (this.#name === undefined) return;
    this.fields.add(this.#name, this.#text?.subarray(0, this.#textBytes) ?? new Uint8Array(0));
  }
}
