// A JSON object whose only member is a list of objects -> each object of the list on a line, while the bytes arrive. It keeps
// nothing of them, and looks only at where objects begin and end: whether one is valid is left to the reader of the lines.

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const TAB = 9;
const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** Names of members are read so far. */
const MAX_NAME_BYTES = 64;

const END_OF_LINE = Uint8Array.of(LINE_FEED);

/** The bytes are not such an object; the message says why, as the rest of a sentence. */
export class ElementsFault extends Error {}

/** What may come next; "member": the quote in front of a name. */
type ElementsState =
  | "start"
  | "member"
  | "name"
  | "colon"
  | "list"
  | "first"
  | "next"
  | "inside"
  | "behind"
  | "end"
  | "done";

const STEPS: Readonly<Partial<Record<ElementsState, Readonly<Record<number, ElementsState>>>>> = {
  start: { [OPEN_BRACE]: "member" },
  member: { [QUOTE]: "name" },
  colon: { [COLON]: "list" },
  list: { [OPEN_BRACKET]: "first" },
  first: { [OPEN_BRACE]: "inside", [CLOSE_BRACKET]: "end" },
  next: { [OPEN_BRACE]: "inside" },
  behind: { [COMMA]: "next", [CLOSE_BRACKET]: "end" },
  end: { [CLOSE_BRACE]: "done" },
};

export class ElementLines {
  /** Bytes of the present object so far, or of the last one. */
  elementBytes = 0;
  readonly #member: string;
  #state: ElementsState = "start";
  #name = "";
  /** Objects that have begun. */
  #count = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  /** @param member - the name of the list */
  constructor(member: string) {
    this.#member = member;
  }

  /** Pieces of the lines. They are parts of the bytes, in which line ends between values become spaces. */
  *read(bytes: Uint8Array): Generator<Uint8Array, void> {
    let position = 0;
    while (position < bytes.length) {
      if (this.#state !== "inside") {
        // The object has the byte that it begins with.
        if (this.#take(bytes[position] as number) !== "inside") position++;
        continue;
      }
      const end = this.#endInside(bytes, position);
      this.elementBytes += end - position;
      yield bytes.subarray(position, end);
      position = end;
      if (this.#depth === 0) {
        this.#state = "behind";
        yield END_OF_LINE;
      }
    }
  }

  /** To be called behind the last bytes; throws where more must come. */
  end(): void {
    if (this.#state !== "done") throw new ElementsFault("ends too early");
  }

  #take(byte: number): ElementsState {
    if (this.#state === "name") return this.#addToName(byte);
    if (byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB) return this.#state;
    const next = STEPS[this.#state]?.[byte];
    if (next === undefined) throw new ElementsFault(this.#faultOf(this.#state));
    if (next === "inside") {
      this.#count++;
      this.elementBytes = 0;
    }
    this.#state = next;
    return next;
  }

  #addToName(byte: number): ElementsState {
    if (byte !== QUOTE) {
      this.#name += String.fromCharCode(byte);
      if (this.#name.length <= MAX_NAME_BYTES) return this.#state;
    }
    if (this.#name !== this.#member) throw new ElementsFault(this.#faultOf("name"));
    this.#state = "colon";
    return this.#state;
  }

  #faultOf(state: ElementsState): string {
    const member = `'${this.#member}'`;
    if (state === "list") return `needs a list as ${member}`;
    if (state === "first" || state === "next") return `needs an object as ${this.#member}[${this.#count}]`;
    if (state === "behind") return `needs a comma or the end of the list behind ${this.#member}[${this.#count - 1}]`;
    return `must be a JSON object with ${member} as its only member`;
  }

  /** The place behind what belongs to the present object. */
  #endInside(bytes: Uint8Array, start: number): number {
    for (let position = start; position < bytes.length; position++) {
      const byte = bytes[position];
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === QUOTE) this.#isInString = !this.#isInString;
      else if (this.#isInString) {
        if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === LINE_FEED)
          throw new ElementsFault(`has a line end in a text of ${this.#member}[${this.#count - 1}]`);
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++;
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (--this.#depth === 0) return position + 1;
      } else if (byte === LINE_FEED || byte === CARRIAGE_RETURN) bytes[position] = SPACE;
    }
    return bytes.length;
  }
}
