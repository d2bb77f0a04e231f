// The body of a request: its bytes and what they say, either of which may be made of the other when it is asked for.

import type { JsonObject } from "./json.ts";
import { withMembers } from "./json-members.ts";

/** The parsed value of a smaller body is kept: parsing it again would cost more than its memory. */
const MAX_KEPT_BYTES = 64 * 1024;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Bytes and what they say are one thing, whatever they are written in. */
export interface RequestBody {
  /** The members of an object, or the text fields of a form. */
  readonly value: JsonObject;
  /** Undefined: JSON. Else the Content-Type that belongs to the bytes. */
  readonly contentType?: string;
  /** The client's own, where nothing was changed; else they differ from those in what was changed alone. */
  bytes(): Uint8Array;
  /** The same with other top-level members; those that are undefined are left out. */
  with(members: JsonObject): RequestBody;
  /**
   * A stream may go on for minutes, and what was parsed takes many times the memory of its bytes: it is let go, and parsed
   * again for a later reader. False where it is kept, because the body is small or never came in bytes.
   */
  letValueGo(): boolean;
}

/** A body is made from another with other members, or from these members alone. */
interface BodyOrigin {
  of: JsonBody | undefined;
  members: JsonObject;
}

export class JsonBody implements RequestBody {
  #bytes: Uint8Array | undefined;
  /** Undefined where it was let go, and of a body that is made of another, which keeps it as long as it is wanted. */
  #value: JsonObject | undefined;
  /** Undefined: the body came in these bytes. */
  readonly #origin: BodyOrigin | undefined;
  /** A reader of a value that was let go looks at it several times at once. */
  #parsed: WeakRef<JsonObject> | undefined;

  constructor(bytes: Uint8Array, value: JsonObject);
  constructor(bytes: undefined, value: JsonObject | undefined, origin: BodyOrigin);
  constructor(bytes: Uint8Array | undefined, value: JsonObject | undefined, origin?: BodyOrigin) {
    this.#bytes = bytes;
    this.#value = value;
    this.#origin = origin;
  }

  /** @param sent - what its bytes say, where that is not all of the value */
  static written(value: JsonObject, sent = value): JsonBody {
    return new JsonBody(undefined, value, { of: undefined, members: sent });
  }

  get value(): JsonObject {
    const known = this.#value ?? this.#parsed?.deref();
    if (known !== undefined) return known;
    const origin = this.#origin;
    const value: JsonObject =
      origin === undefined
        ? JSON.parse(decoder.decode(this.#bytes))
        : { ...(origin.of as RequestBody).value, ...origin.members };
    this.#parsed = new WeakRef(value);
    return value;
  }

  bytes(): Uint8Array {
    if (this.#bytes !== undefined) return this.#bytes;
    const { of, members } = this.#origin as BodyOrigin;
    this.#bytes = of === undefined ? encoder.encode(JSON.stringify(members)) : withMembers(of.bytes(), members);
    return this.#bytes;
  }

  with(members: JsonObject): JsonBody {
    return new JsonBody(undefined, undefined, { of: this, members });
  }

  letValueGo(): boolean {
    const origin = this.#origin;
    const isGone =
      origin === undefined ? (this.#bytes as Uint8Array).length > MAX_KEPT_BYTES : origin.of?.letValueGo() === true;
    if (isGone) this.#value = undefined;
    return isGone;
  }
}
