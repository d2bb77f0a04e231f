// Writes the wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding/) into one growing buffer.

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

const TWO_32 = 2 ** 32;
const LARGEST_INT = 2 ** 31 - 1;
const FIRST_BYTES = 64 * 1024;

const encoder = new TextEncoder();

/** A field that is known but for the number at its end: a message in a message, whose lengths take one byte each. */
export interface PreparedField {
  bytes: Uint8Array;
  /** That of the outer one stands behind the first byte. */
  innerLengthAt: number;
}

export class ProtobufWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView;
  #length = 0;

  constructor(firstBytes = FIRST_BYTES) {
    this.#bytes = new Uint8Array(firstBytes);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** The bytes written so far, valid until the next write: the buffer is used again. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    return taken;
  }

  /** A copy of the bytes written since that place. */
  since(place: number): Uint8Array {
    return this.#bytes.slice(place, this.#length);
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Begins a message, or anything else with a length, as a field; `end` wants what it returns.
   * @param lengthBytes - how many its length will most likely take: 1 up to 127 bytes, 2 up to 16 KB
   */
  begin(field: number, lengthBytes = 1): number {
    this.#room(16);
    this.#varint(field * 8 + LENGTH);
    this.#length += lengthBytes;
    return this.#length;
  }

  /** @param lengthBytes - as given to begin(); what was written moves where the length takes another number of bytes */
  end(start: number, lengthBytes = 1): void {
    const size = this.#length - start;
    const moved = varintBytes(size) - lengthBytes;
    if (moved !== 0) {
      this.#room(moved);
      this.#bytes.copyWithin(start + moved, start, this.#length);
    }
    this.#length = start - lengthBytes;
    this.#varint(size);
    this.#length = start + moved + size;
  }

  string(field: number, text: string): void {
    const { length } = text;
    this.#room(length * 3 + 16);
    this.#varint(field * 8 + LENGTH);
    const start = ++this.#length;
    const size = this.#text(text, start);
    if (size < 128) this.#bytes[start - 1] = size;
    else this.end(start);
  }

  /** Returns how many bytes the text has. There is room for it. */
  #text(text: string, start: number): number {
    const bytes = this.#bytes;
    const { length } = text;
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code > 127) {
        const { written } = encoder.encodeInto(text, bytes.subarray(start));
        this.#length = start + written;
        return written;
      }
      bytes[start + index] = code;
    }
    this.#length = start + length;
    return length;
  }

  /** Writes bytes that are given as hexadecimal digits, in lower case. */
  hex(field: number, digits: string): void {
    const size = digits.length / 2;
    this.#room(size + 16);
    this.#varint(field * 8 + LENGTH);
    this.#varint(size);
    const bytes = this.#bytes;
    let at = this.#length;
    for (let index = 0; index < digits.length; index += 2) {
      bytes[at++] = digitOf(digits.charCodeAt(index)) * 16 + digitOf(digits.charCodeAt(index + 1));
    }
    this.#length = at;
  }

  /** A whole number that is not negative. */
  uint(field: number, value: number): void {
    this.#room(20);
    this.#varint(field * 8 + VARINT);
    this.#varint(value);
  }

  double(field: number, value: number): void {
    this.#room(16);
    this.#varint(field * 8 + FIXED64);
    this.rawDouble(value);
  }

  fixed32(field: number, value: number): void {
    this.#room(16);
    this.#varint(field * 8 + FIXED32);
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  fixed64(field: number, value: number): void {
    this.#room(16);
    this.#varint(field * 8 + FIXED64);
    this.rawFixed64(value);
  }

  /** A time in microseconds as nanoseconds, exact though they do not fit into a number. */
  nanoseconds(field: number, microseconds: number): void {
    this.#room(16);
    this.#varint(field * 8 + FIXED64);
    const upper = Math.floor(microseconds / TWO_32);
    const low = (microseconds - upper * TWO_32) * 1000;
    const carry = Math.floor(low / TWO_32);
    this.#fixed64(upper * 1000 + carry, low - carry * TWO_32);
  }

  /** Writes a member of a packed list. */
  rawFixed64(value: number): void {
    this.#room(8);
    const high = Math.floor(value / TWO_32);
    this.#fixed64(high, value - high * TWO_32);
  }

  rawDouble(value: number): void {
    this.#room(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  /** Writes whole fields that were encoded before. */
  raw(fields: Uint8Array): void {
    this.#room(fields.length);
    this.#bytes.set(fields, this.#length);
    this.#length += fields.length;
  }

  /** A prepared field with a whole number that is not negative at its end. */
  preparedUint({ bytes: known, innerLengthAt }: PreparedField, value: number): void {
    const start = this.#copyShort(known);
    const at = this.#length;
    this.#varint(value);
    const size = this.#length - at;
    const bytes = this.#bytes;
    bytes[start + 1] = (bytes[start + 1] as number) + size;
    bytes[start + innerLengthAt] = (bytes[start + innerLengthAt] as number) + size;
  }

  /** A prepared field with a fraction at its end; its lengths count the 8 bytes already. */
  preparedDouble({ bytes: known }: PreparedField, value: number): void {
    this.#copyShort(known);
    this.rawDouble(value);
  }

  /** Copies bytes that are too short for a call of the runtime's own copying to pay. Returns their place. */
  #copyShort(known: Uint8Array): number {
    const { length } = known;
    this.#room(length + 16);
    const bytes = this.#bytes;
    const start = this.#length;
    for (let index = 0; index < length; index++) bytes[start + index] = known[index] as number;
    this.#length = start + length;
    return start;
  }

  #fixed64(high: number, low: number): void {
    this.#view.setUint32(this.#length, low, true);
    this.#view.setUint32(this.#length + 4, high, true);
    this.#length += 8;
  }

  #varint(value: number): void {
    const bytes = this.#bytes;
    let rest = value;
    while (rest > LARGEST_INT) {
      bytes[this.#length++] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    while (rest >= 128) {
      bytes[this.#length++] = (rest & 127) | 128;
      rest >>= 7;
    }
    bytes[this.#length++] = rest;
  }

  #room(wanted: number): void {
    const least = this.#length + wanted;
    if (least <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(least, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}

function digitOf(code: number): number {
  return code < 58 ? code - 48 : code - 87;
}
