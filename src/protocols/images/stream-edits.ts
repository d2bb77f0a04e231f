// The events of an image stream as the client gets them: by the gateway's own names, by those of the public API,
// or by both. What the backend sent in the right words passes in its own bytes.

import { isObject, type JsonObject } from "../../lib/json.ts";
import type { AnswerEdits } from "../protocol.ts";
import { objectsOf, wholeNumberOf } from "../reading.ts";
import { addCounts } from "../token-counts.ts";
import { type ImageEvent, imageEvents, type SaidOfImage, withImageMember, writeImageEvent } from "./image-event.ts";

export interface ImageStreamOptions {
  /** Whose names the client gets. */
  style: "both" | "specification" | "openai";
  /** What the names of added events begin with where the backend has sent none. */
  prefix: "image_generation" | "image_edit";
  /** How many images a complete answer has. */
  images: number;
  /** Unix time in seconds, for backends that give none. */
  createdAt: number;
}

/** For one stream. */
export function imageStreamEdits(options: ImageStreamOptions): AnswerEdits {
  return new ImageStreamEdits(options);
}

/** The types of the format, whichever of the two operations they belong to. */
const TYPE = /^(image_generation|image_edit)\.(partial_image|complete|completed|usage)$/;

const DONE = { type: "done" } as const;

export class ImageStreamEdits implements AnswerEdits {
  readonly #images: number;
  readonly #createdAt: number;
  readonly #tellsOwnNames: boolean;
  readonly #tellsPublic: boolean;
  #prefix: string;
  /** Last images that have come, by each of their names, and that the client has got. */
  readonly #came = { complete: 0, completed: 0 };
  readonly #told = { complete: 0, completed: 0 };
  /** A last image that the client does not have by its public name yet, because the backend may still send it so. */
  #pending: SaidOfImage | undefined;
  #counts: JsonObject | undefined;
  #hasToldCounts = false;
  #hasToldDone = false;

  constructor({ style, prefix, images, createdAt }: ImageStreamOptions) {
    this.#images = images;
    this.#createdAt = createdAt;
    this.#tellsOwnNames = style !== "openai";
    this.#tellsPublic = style !== "specification";
    this.#prefix = prefix;
  }

  whole(body: Uint8Array): Uint8Array {
    return body;
  }

  push(events: Uint8Array): Uint8Array {
    return this.edit(events, imageEvents(events));
  }

  /** As push(), for events that have been told apart already. */
  edit(events: Uint8Array, found: readonly ImageEvent[]): Uint8Array {
    const told = found.flatMap((event) => this.#words(event));
    const isUntouched = told.length === found.length && told.every((bytes, index) => bytes === found[index]?.bytes);
    return isUntouched ? events : Buffer.concat(told);
  }

  end(): Uint8Array | undefined {
    const left = [...this.#flush(), ...this.#ending()];
    return left.length === 0 ? undefined : Buffer.concat(left);
  }

  #words(event: ImageEvent): Uint8Array[] {
    const { bytes, type } = event;
    const [, prefix, kind] = TYPE.exec(type) ?? [];
    if (prefix !== undefined) this.#prefix = prefix;
    switch (kind ?? type) {
      case "partial_image":
        return [this.#withTimes(event)];
      case "complete":
        return this.#complete(event);
      case "completed":
        return this.#completed(event);
      case "usage":
        return this.#usage(event);
      case "done":
        return this.#done(event);
      case "":
        return this.#other(event);
      default:
        return [bytes];
    }
  }

  /** With each name of the time that the client looks for, so that a partial image is one event for all clients. */
  #withTimes({ bytes, type, said }: ImageEvent): Uint8Array {
    if (!this.#tellsOwnNames && type !== "") return bytes;
    const { members } = said;
    let timed = bytes;
    if (members.created_at === undefined && this.#tellsPublic)
      timed = withImageMember(timed, "created_at", this.#timeOf(members));
    if (members.created === undefined) timed = withImageMember(timed, "created", this.#timeOf(members));
    return timed;
  }

  /** The backend uses the gateway's own names: its usage and end will follow. */
  #complete(event: ImageEvent): Uint8Array[] {
    const told = this.#flush();
    this.#came.complete++;
    if (this.#tellsOwnNames && this.#told.complete < this.#came.complete) {
      this.#told.complete++;
      told.push(event.bytes);
    }
    if (this.#tellsPublic && this.#told.completed < this.#came.complete) this.#pending = event.said;
    return told;
  }

  #completed(event: ImageEvent): Uint8Array[] {
    const told: Uint8Array[] = [];
    this.#came.completed++;
    this.#pending = undefined;
    if (this.#tellsOwnNames) {
      const { said } = event;
      if (isObject(said.members.usage)) this.#counts = addCounts(this.#counts, said.members.usage);
      if (this.#told.complete < this.#came.completed) told.push(this.#writeComplete(said));
    }
    if (this.#tellsPublic && this.#told.completed < this.#came.completed) {
      this.#told.completed++;
      told.push(event.bytes);
    }
    const isLast = this.#came.completed >= this.#images && this.#came.complete === 0;
    return isLast ? [...told, ...this.#ending()] : told;
  }

  #usage(event: ImageEvent): Uint8Array[] {
    const { usage } = event.said.members;
    if (isObject(usage)) this.#counts = usage;
    const told = this.#flush();
    if (!this.#tellsOwnNames || this.#hasToldCounts) return told;
    this.#hasToldCounts = true;
    return [...told, event.bytes];
  }

  #done(event: ImageEvent): Uint8Array[] {
    const told = this.#flush();
    if (!this.#tellsOwnNames || this.#hasToldDone) return told;
    told.push(...this.#usageEvent());
    this.#hasToldDone = true;
    return [...told, event.bytes];
  }

  /** A whole answer in place of a stream, an end marker, or what the format does not know. */
  #other(event: ImageEvent): Uint8Array[] {
    if (event.isDoneMarker) return [...this.#flush(), ...this.#ending(), event.bytes];
    const { members } = event.said;
    return Array.isArray(members.data) ? this.#wholeAnswer(members) : [event.bytes];
  }

  #wholeAnswer({ data, usage, ...about }: JsonObject): Uint8Array[] {
    const told: Uint8Array[] = [];
    if (isObject(usage)) this.#counts = usage;
    const images = objectsOf(data);
    for (const [index, { b64_json, ...image }] of images.entries()) {
      const picture = typeof b64_json === "string" ? Buffer.from(b64_json, "latin1") : undefined;
      const said = { members: { ...about, ...image }, picture };
      if (this.#tellsOwnNames) told.push(this.#writeComplete(said));
      // The counts are those of all images together.
      const isLast = index === images.length - 1;
      if (this.#tellsPublic) told.push(this.#writeCompleted(said, isLast ? this.#counts : undefined));
    }
    return [...told, ...this.#ending()];
  }

  #writeComplete({ members, picture }: SaidOfImage): Uint8Array {
    this.#told.complete++;
    const { url } = members;
    const type = `${this.#prefix}.complete`;
    const address = picture === undefined && url !== undefined ? { url } : {};
    return writeImageEvent({ type, created: this.#timeOf(members), ...address }, picture);
  }

  #writeCompleted({ members, picture }: SaidOfImage, usage: JsonObject | undefined): Uint8Array {
    this.#told.completed++;
    const { type: _, created: __, created_at: ___, ...others } = members;
    const type = `${this.#prefix}.completed`;
    return writeImageEvent(
      { type, created_at: this.#timeOf(members), ...others, ...(usage !== undefined && { usage }) },
      picture,
    );
  }

  /** The backend does not know the public name of the image that came last. */
  #flush(): Uint8Array[] {
    const pending = this.#pending;
    this.#pending = undefined;
    return pending === undefined ? [] : [this.#writeCompleted(pending, this.#counts)];
  }

  #ending(): Uint8Array[] {
    if (!this.#tellsOwnNames || this.#hasToldDone) return [];
    const usage = this.#usageEvent();
    this.#hasToldDone = true;
    return [...usage, writeImageEvent(DONE)];
  }

  /** Nothing where the backend did not count. */
  #usageEvent(): Uint8Array[] {
    if (this.#hasToldCounts || this.#counts === undefined) return [];
    this.#hasToldCounts = true;
    return [writeImageEvent({ type: `${this.#prefix}.usage`, usage: this.#counts })];
  }

  #timeOf({ created, created_at }: JsonObject): number {
    return wholeNumberOf(created_at) ?? wholeNumberOf(created) ?? this.#createdAt;
  }
}
