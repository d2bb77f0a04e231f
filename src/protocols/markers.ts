// Texts that tell an event of a stream by its bytes alone, without decoding it.

/** As bytes, because every chunk is looked through: Bun encodes a text again for each search. */
export type Markers = readonly Uint8Array[];

export function markersOf(...texts: readonly string[]): Markers {
  return texts.map((text) => Buffer.from(text));
}

const { includes } = Buffer.prototype;

/** Makes no view of the bytes: that would take longer than the search. */
export function hasMarker(events: Uint8Array, markers: Markers): boolean {
  return markers.some((marker) => includes.call(events, marker));
}
