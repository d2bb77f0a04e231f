// Texts that tell an event of a stream by its bytes alone, without decoding it.

/** As bytes, because every chunk is looked through: Bun encodes a text anew for each search. */
export type Markers = readonly Uint8Array[];

export function markersOf(...texts: readonly string[]): Markers {
  return texts.map((text) => Buffer.from(text));
}

export function hasMarker(events: Uint8Array, markers: Markers): boolean {
  const bytes = Buffer.from(events.buffer, events.byteOffset, events.length);
  return markers.some((marker) => bytes.includes(marker));
}
