// The event sources of a configuration: each is opened when it appears, and closed when it goes or is another.

import type { CacheEvent } from "./cache-event.ts";
import { type EventSource, type EventSourceParts, type EventSourceView, openEventSource } from "./event-source.ts";
import type { KvIndexSettings } from "./kv-index.ts";

export type EventSources = ReturnType<typeof createEventSources>;

interface EventSourcesParts extends Omit<EventSourceParts, "settings" | "told"> {
  told(backendName: string, event: CacheEvent): void;
}

export function createEventSources(parts: EventSourcesParts) {
  /** Keys are the settings of a source and the server of its backend, as JSON. */
  let open = new Map<string, EventSource>();

  return {
    /** @param serverOf - what a backend of that name is reached at: another server has another stream */
    apply(sources: KvIndexSettings["event_sources"], serverOf: (name: string) => string): void {
      const next = new Map<string, EventSource>();
      for (const settings of sources) {
        const { backend_name: name } = settings;
        const key = JSON.stringify([settings, serverOf(name)]);
        if (next.has(key)) continue;
        const kept = open.get(key);
        open.delete(key);
        next.set(key, kept ?? openEventSource({ ...parts, settings, told: (event) => parts.told(name, event) }));
      }
      for (const gone of open.values()) gone.close();
      open = next;
    },
    views: (): EventSourceView[] => [...open.values()].map((source) => source.view()),
    close(): void {
      for (const source of open.values()) source.close();
      open = new Map();
    },
  };
}
