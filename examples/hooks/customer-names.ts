// Takes the names of customers out of requests, and puts them back into answers and streams.

import { change, defineHook, type JsonObject, pass } from "signalbox/hooks";

interface Options {
  names: string[];
}

const placeholderOf = (index: number) => `<CUSTOMER-${index}>`;
/** The beginning of a placeholder at the end of a piece of a stream. */
const UNFINISHED = /<(?:C(?:U(?:S(?:T(?:O(?:M(?:E(?:R(?:-\d{0,6})?)?)?)?)?)?)?)?)?$/;

function replaced(value: unknown, replace: (text: string) => string): unknown {
  if (typeof value === "string") return replace(value);
  if (Array.isArray(value)) return value.map((entry) => replaced(entry, replace));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, replaced(entry, replace)]));
}

export default defineHook<Options>({
  options({ names }) {
    if (!Array.isArray(names)) throw new Error("options.names: expected a list of names");
    return { names: names.map(String) };
  },
  chunks: { by: "delta" },

  request({ body, options: { names } }) {
    const taken = (text: string) =>
      names.reduce((left, name, index) => left.replaceAll(name, placeholderOf(index)), text);
    return change({ body: replaced(body, taken) as JsonObject });
  },

  answer({ body, options }) {
    return change({ body: replaced(body, (text) => putBack(text, options)) as JsonObject });
  },

  chunk({ text, isLast, options }) {
    const begun = isLast ? null : UNFINISHED.exec(text);
    if (begun === null) return text.includes("<") ? change({ text: putBack(text, options) }) : pass();
    // The rest comes again, in front of the next piece.
    return change({ text: putBack(text.slice(0, begun.index), options), rest: begun[0] });
  },
});

function putBack(text: string, { names }: Options): string {
  return text.replaceAll(/<CUSTOMER-(\d{1,6})>/g, (placeholder, index: string) => names[Number(index)] ?? placeholder);
}
