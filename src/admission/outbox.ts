// Messages to one other gateway, in their order: what gathers while an envelope is under way goes with the next one.

/** Beyond, they are lost together, and the other side notices it by the number that it misses. */
const MOST_PENDING = 20_000;

export interface Outbox<Message> {
  push(message: Message): void;
  /** Sends an envelope even if it is empty, so that the other side notices what was lost. */
  beat(): void;
  close(): void;
}

/** @param send - resolves when the envelope has gone or is lost */
export function createOutbox<Message>(
  send: (number: number, messages: readonly Message[]) => Promise<unknown>,
): Outbox<Message> {
  let pending: Message[] = [];
  let number = 0;
  let isDue = false;
  let isFlying = false;
  let isClosed = false;

  async function fly(): Promise<void> {
    // What comes in the same turn goes with it.
    await Promise.resolve();
    while (!isClosed && (isDue || pending.length > 0)) {
      const messages = pending;
      pending = [];
      isDue = false;
      await send(number++, messages);
    }
    isFlying = false;
  }

  function begin(): void {
    if (isFlying || isClosed) return;
    isFlying = true;
    void fly();
  }

  return {
    push(message) {
      if (pending.length >= MOST_PENDING) {
        pending = [];
        number++;
      }
      pending.push(message);
      begin();
    },
    beat() {
      isDue = true;
      begin();
    },
    close() {
      isClosed = true;
      pending = [];
    },
  };
}
