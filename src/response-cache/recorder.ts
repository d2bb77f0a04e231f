// Collects the bytes of streams that may be stored when they are complete, within one bound for all of them together.

interface RecorderOptions {
  /** Bound of one stream. */
  maxBytes: number;
  /** Bound of all streams being collected: thousands may run at once. */
  maxTotalBytes: number;
}

export type Recorder = ReturnType<typeof createRecorder>;

export function createRecorder({ maxBytes, maxTotalBytes }: RecorderOptions) {
  let heldBytes = 0;
  return {
    /** Bytes being held now. */
    get heldBytes(): number {
      return heldBytes;
    },
    start() {
      let pieces: Uint8Array[] | undefined = [];
      let bytes = 0;
      /** Forgets a stream that broke or was left. Safe to call at any time. */
      function drop(): void {
        heldBytes -= bytes;
        bytes = 0;
        pieces = undefined;
      }
      return {
        /** The bytes as the client gets them; beyond the bound everything is dropped silently. */
        add(piece: Uint8Array): void {
          if (pieces === undefined) return;
          if (bytes + piece.length > maxBytes || heldBytes + piece.length > maxTotalBytes) {
            drop();
            return;
          }
          pieces.push(piece);
          bytes += piece.length;
          heldBytes += piece.length;
        },
        /** All bytes of a complete stream, or undefined when they were too many. Ends the recording. */
        finish(): Uint8Array | undefined {
          // Not Buffer.concat, which may return a view into a shared pool.
          const whole = pieces === undefined ? undefined : new Uint8Array(bytes);
          let offset = 0;
          for (const piece of pieces ?? []) {
            whole?.set(piece, offset);
            offset += piece.length;
          }
          drop();
          return whole;
        },
        drop,
      };
    },
  };
}
