// Reads one member of a large JSON object from its end, without parsing the whole.

/** A member that begins before these last bytes is not found. */
const TAIL_BYTES = 8 * 1024;

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const BACKSLASH = 92;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

const decoder = new TextDecoder();

/**
 * The object that is the value of a member of the outermost object: the last member of that name, where it stands near the
 * end of a text that is JSON. Undefined where it does not, or is no object.
 */
export function objectNearEnd(json: Uint8Array, name: string): unknown {
  const tail = Buffer.from(json.buffer, json.byteOffset, json.length).subarray(-TAIL_BYTES);
  const key = `"${name}"`;
  const found = tail.lastIndexOf(key);
  // Inside a string the first quote would have a backslash before it.
  const before = tail[lastMark(tail, found - 1)];
  if (found < 0 || (before !== COMMA && before !== OPEN_BRACE)) return undefined;
  const colon = nextMark(tail, found + key.length);
  const start = nextMark(tail, colon + 1);
  if (tail[colon] !== COLON || tail[start] !== OPEN_BRACE) return undefined;
  const end = endOfContainer(tail, start);
  // The member belongs to the outermost object if the last byte closes its container.
  const isOutermost = end > 0 && endOfContainer(tail, end, 1) === lastMark(tail, tail.length - 1) + 1;
  if (!isOutermost) return undefined;
  try {
    return JSON.parse(decoder.decode(tail.subarray(start, end)));
  } catch {
    return undefined;
  }
}

/** The offset behind the bracket that closes what is open; 0 where it does not come. */
function endOfContainer(bytes: Uint8Array, start: number, open = 0): number {
  let depth = open;
  for (let offset = start; offset < bytes.length; offset++) {
    const byte = bytes[offset];
    if (byte === QUOTE) offset = closingQuote(bytes, offset + 1);
    else if (isOpening(byte)) depth++;
    else if (isClosing(byte) && --depth === 0) return offset + 1;
  }
  return 0;
}

function closingQuote(bytes: Uint8Array, start: number): number {
  for (let offset = start; offset < bytes.length; offset++) {
    const byte = bytes[offset];
    if (byte === BACKSLASH) offset++;
    else if (byte === QUOTE) return offset;
  }
  return bytes.length;
}

/** A brace or a bracket: they differ in one bit. */
function isOpening(byte: number | undefined): boolean {
  return byte !== undefined && (byte | 32) === OPEN_BRACE;
}

function isClosing(byte: number | undefined): boolean {
  return byte !== undefined && (byte | 32) === CLOSE_BRACE;
}

/** The nearest byte that is no blank, from the offset on. */
function nextMark(bytes: Uint8Array, offset: number): number {
  let at = offset;
  while (isBlank(bytes[at])) at++;
  return at;
}

function lastMark(bytes: Uint8Array, offset: number): number {
  let at = offset;
  while (isBlank(bytes[at])) at--;
  return at;
}

function isBlank(byte: number | undefined): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}
