// Tools in a namespace (type "namespace"), which the other formats do not know: each becomes a tool of its own under a
// joined name, and its calls come back under the names that the client gave. A function that a tool search loads
// (defer_loading) is in a namespace of its own name, and the vendor refuses a history whose calls leave that out.

import type { JsonObject } from "../../lib/json.ts";
import { objectsOf, textOf } from "../reading.ts";

export const NAMESPACE = "namespace";

const SEPARATOR = "__";

/** The longest name of a function that every backend takes. */
const MAX_NAME_LENGTH = 64;

export interface NamespacedName {
  namespace: string;
  name: string;
}

export function joinedName({ namespace, name }: NamespacedName): string {
  if (namespace === name) return name;
  const joined = namespace.endsWith(SEPARATOR) ? namespace + name : namespace + SEPARATOR + name;
  if (joined.length <= MAX_NAME_LENGTH) return joined;
  // The end of a long name would tell it from no other one once it is cut off.
  const mark = `_${Bun.hash.xxHash32(joined).toString(36)}`;
  return joined.slice(0, MAX_NAME_LENGTH - mark.length) + mark;
}

/** The name under which the other formats know the tool or the call that is written here. */
export function flatName(value: JsonObject): string {
  const name = textOf(value.name);
  const namespace = textOf(value.namespace);
  return namespace === "" ? name : joinedName({ namespace, name });
}

/** The tools that an item of the input brings. */
export function toolsOfItem({ type, tools }: JsonObject): JsonObject[] {
  if (type === "additional_tools") return objectsOf(tools);
  return type === "tool_search_output" ? objectsOf(tools).filter((tool) => LOADED.has(tool.type)) : [];
}

/** What a search loads of the client's own; tools of servers are the vendor's to call. */
const LOADED: ReadonlySet<unknown> = new Set(["function", "custom", NAMESPACE]);

/** The joined names of a request and what they stand for; undefined when it has no namespaces. */
export function namespacesIn({ tools, input }: JsonObject): ReadonlyMap<string, NamespacedName> | undefined {
  let names: Map<string, NamespacedName> | undefined;
  for (const tool of [...objectsOf(tools), ...objectsOf(input).flatMap(toolsOfItem)]) {
    for (const named of namesIn(tool)) {
      names ??= new Map();
      names.set(joinedName(named), named);
    }
  }
  return names;
}

function namesIn(tool: JsonObject): NamespacedName[] {
  const namespace = textOf(tool.name);
  if (tool.type === NAMESPACE) return objectsOf(tool.tools).map(({ name }) => ({ namespace, name: textOf(name) }));
  return tool.defer_loading === true ? [{ namespace, name: namespace }] : [];
}

/** A namespace's description stands before that of its first tool: other formats have no other place for it. */
export function flattened(namespace: JsonObject): JsonObject[] {
  const name = textOf(namespace.name);
  const about = textOf(namespace.description);
  return objectsOf(namespace.tools).map((member, index) => {
    const introduction = index > 0 || about === "" ? [] : [`${name}: ${about}`];
    const own = textOf(member.description);
    const description = [...introduction, ...(own === "" ? [] : [own])].join("\n\n");
    return {
      ...member,
      name: joinedName({ namespace: name, name: textOf(member.name) }),
      ...(description !== "" && { description }),
    };
  });
}
