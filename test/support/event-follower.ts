// Follows a stream of events that does not end by itself.

import { splitSse } from "./sse-reader.ts";
import { waitFor } from "./wait-for.ts";

export interface FollowedEvent {
  id: number;
  event: string;
  data: Record<string, unknown>;
}

export class EventFollower {
  readonly response: Response;
  #text = "";
  isOver = false;
  readonly #leaving: AbortController;

  private constructor(response: Response, leaving: AbortController) {
    this.response = response;
    this.#leaving = leaving;
    void this.#read();
  }

  static async open(
    target: { fetch(path: string, init?: RequestInit): Promise<Response> },
    headers: Record<string, string> = {},
    path = "/admin/events",
  ): Promise<EventFollower> {
    const leaving = new AbortController();
    const follower = new EventFollower(await target.fetch(path, { headers, signal: leaving.signal }), leaving);
    await waitFor("the stream has begun", () => follower.text !== "" || follower.isOver);
    return follower;
  }

  get text(): string {
    return this.#text;
  }

  get events(): FollowedEvent[] {
    const whole = splitSse(this.#text).events.filter(({ data }) => data !== undefined);
    return whole.map(({ raw, event, data }) => ({
      id: Number(/^id: (\d+)$/m.exec(raw)?.[1]),
      event: event ?? "",
      data: JSON.parse(data ?? "") as Record<string, unknown>,
    }));
  }

  /** The first one that fits. */
  next(what: string, fits: (event: FollowedEvent) => boolean): Promise<FollowedEvent> {
    return waitFor(what, () => this.events.find(fits) ?? false);
  }

  leave(): void {
    this.#leaving.abort();
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const bytes of this.response.body ?? []) this.#text += decoder.decode(bytes, { stream: true });
    } catch {} // It was left, or cut.
    this.isOver = true;
  }
}
