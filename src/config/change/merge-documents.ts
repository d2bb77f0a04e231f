// Merges two documents that began as the same one: what an edit of the file changed is brought into what runs, and all
// else stays as it runs.

import { documentJsonSchema } from "../schema/schema-export.ts";
import { alternatives, knownKeys, schemaAt } from "../schema/schema-path.ts";
import { isMapping, type Mapping, type Path, valueAt } from "../values/values.ts";
import { entryNameKey, identifiedEntries, nameOf } from "./entries.ts";

/** Three documents with canonical keys, none nested too deeply. */
interface Sides {
  /** The file as it was applied last. */
  base: Mapping;
  /** The file as it is now; where both sides changed the same field, it wins. */
  file: Mapping;
  running: Mapping;
}

interface Merged {
  document: Mapping;
  /** Fields that both sides had changed; entries of lists by their names, those without one by the list. */
  replaced: Path[];
}

/** No argument is changed. */
export function mergeDocuments({ base, file, running }: Sides): Merged {
  const replaced: Path[] = [];

  /** Undefined stands for what is not there. `shown` is the path with names instead of indexes. */
  function merge(base: unknown, file: unknown, running: unknown, path: Path, shown: Path): unknown {
    if (Bun.deepEquals(base, file, true)) return running;
    if (Bun.deepEquals(base, running, true)) return file;
    const merged = mergeMembers(base, file, running, path, shown);
    if (merged !== undefined) return merged.isEmpty ? undefined : merged.value;
    if (!Bun.deepEquals(file, running, true)) replaced.push(shown);
    return file;
  }

  /** Undefined where the value is one field. */
  function mergeMembers(base: unknown, file: unknown, running: unknown, path: Path, shown: Path) {
    const isGone = file === undefined || running === undefined;
    if (isGone && isEntry(path)) return undefined;
    const sides = [file, running].filter((side) => side !== undefined);
    if (sides.every(isMapping)) {
      const value = mergeMappings(mappingOf(base), mappingOf(file), mappingOf(running), path, shown);
      return { value, isEmpty: isGone && Object.keys(value).length === 0 };
    }
    if (!sides.every(Array.isArray)) return undefined;
    const value = mergeLists(listOf(base), listOf(file), listOf(running), path, shown);
    return value && { value, isEmpty: isGone && value.length === 0 };
  }

  function mergeMappings(base: Mapping, file: Mapping, running: Mapping, path: Path, shown: Path): Mapping {
    const keys = new Set([...Object.keys(running), ...Object.keys(file)]);
    const entries = [...keys].map((key): [string, unknown] => {
      const at = (mapping: Mapping) => valueAt(mapping, [key]);
      return [key, merge(at(base), at(file), at(running), [...path, key], [...shown, key])];
    });
    // fromEntries defines properties instead of assigning them, so that a key "__proto__" stays an ordinary key.
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  }

  /** Lists of named entries, entry by entry; undefined for any other list. */
  function mergeLists(base: unknown[], file: unknown[], running: unknown[], path: Path, shown: Path) {
    const [bases, files, runnings] = [base, file, running].map((list) => identifiedEntries(list, path));
    if (bases === undefined || files === undefined || runnings === undefined) return undefined;
    const isReordered = !Bun.deepEquals(commonKeys(bases, files), commonKeys(files, bases));
    return (isReordered ? joinOrders(files, runnings) : joinOrders(runnings, files))
      .map((identity) => {
        const entries = [bases, files, runnings].map((entries) => entries.get(identity)) as [unknown, unknown, unknown];
        const name = nameOf(entries[1] ?? entries[2], entryNameKey(path) as string);
        return merge(...entries, [...path, 0], name === undefined ? shown : [...shown, name]);
      })
      .filter((entry) => entry !== undefined);
  }

  return { document: merge(base, file, running, [], []) as Mapping, replaced };
}

/**
 * An entry of a list, or of a mapping whose keys operators choose, is there or not as a whole, and so is what cannot stand
 * there in part. Of anything else that one side has removed the members count one by one.
 */
function isEntry(path: Path): boolean {
  const key = path.at(-1);
  if (typeof key !== "string" || !knownKeys(schemaAt(documentJsonSchema(), path.slice(0, -1))).includes(key))
    return true;
  const schema = schemaAt(documentJsonSchema(), path);
  return schema !== undefined && alternatives(schema).some(({ required = [] }) => required.length > 0);
}

function mappingOf(value: unknown): Mapping {
  return isMapping(value) ? value : {};
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

type Entries = ReadonlyMap<string, unknown>;

/** In the order of the first. */
function commonKeys(one: Entries, other: Entries): string[] {
  return [...one.keys()].filter((name) => other.has(name));
}

/** All names, in the order of the first; one that only the second has stands behind its neighbour there. */
function joinOrders(first: Entries, second: Entries): string[] {
  const followers = new Map<string | undefined, string[]>();
  let neighbour: string | undefined;
  for (const name of second.keys()) {
    if (first.has(name)) neighbour = name;
    else if (followers.get(neighbour)?.push(name) === undefined) followers.set(neighbour, [name]);
  }
  const behind = (name: string | undefined) => followers.get(name) ?? [];
  return [...behind(undefined), ...[...first.keys()].flatMap((name) => [name, ...behind(name)])];
}
