// The text fields of a form, by their names: one text, or several where a field repeats.

import type { JsonObject } from "./json.ts";
import { MultipartFault } from "./multipart-fault.ts";

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class FormFields {
  readonly #fields = new Map<string, string | string[]>();

  /** Throws MultipartFault where the bytes are no text. */
  add(name: string, bytes: Uint8Array): void {
    const text = decoded(name, bytes);
    const known = this.#fields.get(name);
    if (known === undefined) this.#fields.set(name, text);
    else if (typeof known === "string") this.#fields.set(name, [known, text]);
    else known.push(text);
  }

  /** Names are whatever the client wrote, "__proto__" among them. */
  toObject(): JsonObject {
    return Object.fromEntries(this.#fields);
  }
}

function decoded(name: string, bytes: Uint8Array): string {
  try {
    return strictDecoder.decode(bytes);
  } catch {
    const message = `${name.slice(0, 64)}: is neither a file, which has a filename, nor text in UTF-8.`;
    throw new MultipartFault("notText", message, name);
  }
}
