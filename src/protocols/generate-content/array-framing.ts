// The stream of a client that does not ask for events (alt=sse): one JSON array of the same answer objects.

import type { Framing } from "../framing.ts";

export const JSON_ARRAY: Framing = {
  contentType: "application/json; charset=UTF-8",
  writer() {
    let begin = "[";
    return {
      event(data) {
        const text = begin + data;
        begin = ",\r\n";
        return text;
      },
      end: () => (begin === "[" ? "[]" : "]"),
    };
  },
};
