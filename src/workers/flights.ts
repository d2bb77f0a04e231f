// Which worker makes the call that identical requests share: the first that asks. Others get the address of that worker.

interface WorkerFlight {
  /** Of the worker that makes the call. */
  socket: string;
  /** How long others may join it. */
  untilMs: number;
}

export type Flights = ReturnType<typeof createFlights>;

/** One worker may have so many calls under way that others can join. */
const MAX_FLIGHTS = 100_000;

export function createFlights(now: () => number) {
  /** By the digest of what the requests have in common. */
  const flights = new Map<string, WorkerFlight>();

  return {
    /**
     * Where the call is made. A worker that gets its own address makes it.
     * @param isNotAt - where it is known not to be
     */
    lead(digest: string, socket: string, ttlMs: number, isNotAt: string | undefined): string {
      const known = flights.get(digest);
      if (known !== undefined && known.socket !== isNotAt && now() < known.untilMs) return known.socket;
      if (flights.size >= MAX_FLIGHTS && known === undefined) return socket;
      flights.set(digest, { socket, untilMs: now() + ttlMs });
      return socket;
    },
    landed(digest: string, socket: string): void {
      if (flights.get(digest)?.socket === socket) flights.delete(digest);
    },
    /** The worker is gone. */
    gone(socket: string): void {
      for (const [digest, flight] of flights) if (flight.socket === socket) flights.delete(digest);
    },
  };
}
