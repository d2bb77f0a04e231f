// Writes the wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding/) into one growing buffer.

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

const TWO_32 = 2 ** 32;
const LARGEST_INT = 2 ** 31 - 1;
const FIRST_BYTES = 64 * 1024;

const encoder = new TextEncoder();

export class ProtobufWriter {
  #bytes = new Uint8Array(FIRST_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  /** A copy of what was written; the buffer serves again. */
  take(): Uint8Array {
    const taken = this.#bytes.slice(0, this.#length);
    this.#length = 0;
    return taken;
  }

  /** What was written since a place. */
  since(place: number): Uint8Array {
    return this.#bytes.slice(place, this.#length);
  }

  get length(): number {
    return this.#length;
  }

  /** Begins a message, or anything else with a length, as a field; `end` wants what it returns. */
  begin(field: number): number {
    this.#room(16);
    this.#varint(field * 8 + LENGTH);
    return ++this.#length; // one byte for the length, which is enough for most
  }

  end(start: number): void {
    const size = this.#length - start;
    let extra = 0;
    for (let rest = size; rest >= 128; rest = Math.floor(rest / 128)) extra++;
    if (extra > 0) {
      this.#room(extra);
      this.#bytes.copyWithin(start + extra, start, this.#length);
    }
    this.#length = start - 1;
    this.#varint(size);
    this.#length = start + extra + size;
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

  /** Bytes that are given as hexadecimal digits, in lower case. */
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

  /** Members of a packed list. */
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

  /** Whole fields that were written before. */
  raw(fields: Uint8Array): void {
    this.#room(fields.length);
    this.#bytes.set(fields, this.#length);
    this.#length += fields.length;
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

function digitOf(code: number): number {
  return code < 58 ? code - 48 : code - 87;
}
