import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Linked, RecencyList } from "./recency-list.ts";

interface Node extends Linked<Node> {
  name: number;
}

function node(name: number): Node {
  return { name, older: undefined, newer: undefined };
}

describe("property: as a plain list of names says", () => {
  test("which nodes there are, in which order, and which is the oldest", () => {
    const step = fc.record({ kind: fc.constantFrom("use", "use", "remove"), name: fc.nat(6) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const list = new RecencyList<Node>();
        const nodes = new Map<number, Node>();
        let model: number[] = [];
        for (const { kind, name } of steps) {
          const known = nodes.get(name);
          model = model.filter((each) => each !== name);
          if (kind === "use") {
            model.push(name);
            if (known !== undefined) list.use(known);
            else {
              const made = node(name);
              nodes.set(name, made);
              list.add(made);
            }
          } else if (known !== undefined) {
            nodes.delete(name);
            list.remove(known);
            expect(known).toEqual(node(name));
          }
          expect([...list].map((each) => each.name)).toEqual(model);
          expect(list.size).toBe(model.length);
          expect(list.oldest?.name).toBe(model[0] as number);
        }
        for (const each of list) list.remove(each);
        expect([[...list], list.size, list.oldest]).toEqual([[], 0, undefined]);
      }),
    );
  });
});

test("the node at hand may be removed on the way", () => {
  const list = new RecencyList<Node>();
  for (const name of [1, 2, 3, 4]) list.add(node(name));
  for (const each of list) if (each.name % 2 === 0) list.remove(each);
  expect([...list].map(({ name }) => name)).toEqual([1, 3]);
});
