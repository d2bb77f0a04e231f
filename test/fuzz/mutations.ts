// Bytes that were correct once: random changes of the kinds that programs trip over.

export type Random = () => number;

/** @param samples - what may be copied into the bytes, beside parts of themselves */
export function mutated(bytes: Uint8Array, random: Random, samples: readonly Uint8Array[]): Uint8Array {
  const below = (limit: number) => Math.floor(random() * limit);
  let result = Buffer.from(bytes);
  for (let left = 1 + below(4); left > 0; left--) {
    // Behind a line feed, now and then: there a form has what is worth a change.
    const somewhere = below(result.length + 1);
    const at = random() < 0.4 ? result.indexOf(10, somewhere) + 1 : somewhere;
    const end = Math.min(result.length, at + 1 + below(random() < 0.2 ? result.length + 1 : 8));
    const [before, middle, after] = [result.subarray(0, at), result.subarray(at, end), result.subarray(end)];
    const sample = samples[below(samples.length)] as Uint8Array;
    const noise = Buffer.from(Array.from({ length: 1 + below(6) }, () => below(256)));
    const kinds = [
      () => Buffer.concat([before, after]),
      () => Buffer.concat([before, middle, middle, after]),
      () => Buffer.concat([before, noise, after]),
      () => Buffer.concat([before, noise, middle, after]),
      () => Buffer.concat([before, sample, after]),
      () => Buffer.concat([before, sample, middle, after]),
      () => Buffer.concat([before, after, middle]),
      () => Buffer.concat([before, middle.map((byte) => byte ^ (1 << below(8))), after]),
    ];
    result = (kinds[below(kinds.length)] as () => Buffer<ArrayBuffer>)();
  }
  return result;
}
