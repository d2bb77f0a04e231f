import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type FairItem, type FairNode, FairTree } from "./fair-tree.ts";

interface Request extends FairItem {
  tenant: string;
  input: number;
  output: number;
}

const always = () => true;
let orders = 0;

function request(tenant: string, input = 1, output = 0): Request {
  return { tenant, input, output, cost: input, order: orders++ };
}

function newTree(weights: Record<string, number> = {}) {
  return new FairTree<Request>((name) => weights[name] ?? 1);
}

/** Serves whole requests, one after the other, and gives the tenants in their order. */
function serve(tree: FairTree<Request>, count: number): string[] {
  const tenants: string[] = [];
  for (let turn = 0; turn < count; turn++) {
    const next = tree.next(always);
    if (next === undefined) break;
    tree.remove(next.leaf, next.item);
    tree.charge(next.leaf, next.item.cost);
    tenants.push(next.item.tenant);
  }
  return tenants;
}

function add(tree: FairTree<Request>, path: readonly string[], ...items: Request[]): void {
  for (const item of items) tree.add(tree.leaf(path[0] as string, path.slice(1)), item);
}

describe("the order", () => {
  test("tenants with equal requests take turns, whoever has more of them", () => {
    const tree = newTree();
    add(tree, ["default", "heavy"], ...Array.from({ length: 6 }, () => request("heavy")));
    add(tree, ["default", "small"], request("small"), request("small"));
    expect(serve(tree, 8).slice(0, 4).toSorted()).toEqual(["heavy", "heavy", "small", "small"]);
  });

  test("service is counted in tokens, not in requests", () => {
    const tree = newTree();
    add(tree, ["default", "long"], ...Array.from({ length: 10 }, () => request("long", 30)));
    add(tree, ["default", "short"], ...Array.from({ length: 30 }, () => request("short", 10)));
    const served = serve(tree, 20);
    expect(served.filter((tenant) => tenant === "long").length).toBe(5);
  });

  test("classes get service by their weights", () => {
    const tree = newTree({ interactive: 10, batch: 1 });
    add(tree, ["interactive", "a"], ...Array.from({ length: 100 }, () => request("a")));
    add(tree, ["batch", "a"], ...Array.from({ length: 100 }, () => request("b")));
    expect(serve(tree, 55).filter((tenant) => tenant === "b").length).toBe(5);
  });

  test("the requests of a tenant are served in their order, however late one of them is added", () => {
    const tree = newTree();
    const [first, second, third] = [request("first"), request("second"), request("third")];
    add(tree, ["default", "a"], second, third, first);
    expect(serve(tree, 3)).toEqual(["first", "second", "third"]);
  });

  test("a tenant whose requests may not be served now is passed over, and is next when they may", () => {
    const tree = newTree();
    add(tree, ["default", "behind"], request("behind"));
    add(tree, ["default", "ahead"], request("ahead"), request("ahead"));
    tree.charge(tree.leaf("default", ["ahead"]), 100);
    expect(tree.next((item) => item.tenant === "ahead")?.item.tenant).toBe("ahead");
    expect(tree.next(always)?.item.tenant).toBe("behind");
    expect(tree.next(() => false)).toBeUndefined();
  });

  test("of two tenants with equal service the one with fewer requests under way is next", () => {
    const tree = newTree();
    tree.answering(tree.leaf("default", ["busy"]), 1);
    add(tree, ["default", "busy"], request("busy"));
    add(tree, ["default", "quiet"], request("quiet"));
    expect(serve(tree, 1)).toEqual(["quiet"]);
  });
});

describe("idleness", () => {
  test("is not saved up: who comes back shares from now on", () => {
    const tree = newTree();
    add(tree, ["default", "late"], request("late"));
    serve(tree, 1);
    add(tree, ["default", "steady"], ...Array.from({ length: 300 }, () => request("steady")));
    serve(tree, 100);
    add(tree, ["default", "late"], ...Array.from({ length: 100 }, () => request("late")));
    expect(serve(tree, 40).filter((tenant) => tenant === "late").length).toBeLessThanOrEqual(21);
  });

  test("of all does not begin the count again at nothing", () => {
    const tree = newTree();
    add(tree, ["default", "a"], ...Array.from({ length: 50 }, () => request("a")));
    serve(tree, 50);
    add(tree, ["default", "b"], ...Array.from({ length: 50 }, () => request("b")));
    add(tree, ["default", "a"], ...Array.from({ length: 50 }, () => request("a")));
    expect(serve(tree, 20).filter((tenant) => tenant === "b").length).toBeLessThanOrEqual(11);
  });
});

describe("what was charged too much", () => {
  test("is given back whole while no other tenant waits", () => {
    const tree = newTree();
    add(tree, ["default", "only"], request("only"));
    const only = tree.leaf("default", ["only"]);
    tree.charge(only, 5_000);
    tree.giveBack(only, 4_000, 1_000);
    expect(only.served).toBe(1_000);
  });

  test("does not let a tenant's further requests go before one that began to wait in the meantime", () => {
    const tree = newTree();
    add(tree, ["default", "heavy"], ...Array.from({ length: 500 }, () => request("heavy", 10)));
    // The gateway expects of each 40 times what it costs.
    for (let count = 0; count < 100; count++) serve(tree, 1);
    const heavy = tree.leaf("default", ["heavy"]);
    tree.charge(heavy, 100 * 390);
    add(tree, ["default", "small"], request("small", 10), request("small", 10));
    for (let count = 0; count < 100; count++) tree.giveBack(heavy, 390, 10);
    expect(serve(tree, 3)).toContain("small");
  });

  test("never changes the order by more than one request", () => {
    const steps = fc.array(fc.record({ tokens: fc.nat(1_000), cost: fc.integer({ min: 1, max: 100 }) }));
    fc.assert(
      fc.property(fc.nat(10_000), fc.nat(10_000), steps, (own, other, gifts) => {
        const tree = newTree();
        add(tree, ["default", "own"], request("own"));
        add(tree, ["default", "other"], request("other"));
        const [ownLeaf, otherLeaf] = [tree.leaf("default", ["own"]), tree.leaf("default", ["other"])];
        tree.charge(ownLeaf, own);
        tree.charge(otherLeaf, other);
        for (const { tokens, cost } of gifts) {
          const before = ownLeaf.served;
          tree.giveBack(ownLeaf, tokens, cost);
          expect(ownLeaf.served).toBeLessThanOrEqual(before);
          expect(ownLeaf.served).toBeGreaterThanOrEqual(Math.min(before, otherLeaf.served - cost));
        }
      }),
    );
  });
});

describe("the largest tenant", () => {
  test("is the one with the most requests for its weight, at every level", () => {
    const tree = newTree({ interactive: 10, batch: 1 });
    add(tree, ["interactive", "a"], ...Array.from({ length: 20 }, () => request("a")));
    add(tree, ["batch", "b"], ...Array.from({ length: 3 }, () => request("b")));
    add(tree, ["batch", "c"], ...Array.from({ length: 4 }, () => request("c")));
    expect(tree.largest()?.name).toBe("c");
    expect(newTree().largest()).toBeUndefined();
  });

  test("is never one below its part of all places", () => {
    const tenants = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 2, maxLength: 8 });
    fc.assert(
      fc.property(tenants, (counts) => {
        const tree = newTree();
        counts.forEach((count, index) => {
          add(tree, ["default", `t${index}`], ...Array.from({ length: count }, () => request("")));
        });
        const largest = tree.largest() as FairNode<Request>;
        const part = tree.waiting / counts.length;
        expect(largest.waiting).toBeGreaterThanOrEqual(part);
        for (let index = 0; index < counts.length; index++) {
          const leaf = tree.leaf("default", [`t${index}`]);
          if (tree.isSmaller(leaf, largest)) expect(leaf.waiting + 1).toBeLessThan(largest.waiting);
        }
      }),
    );
  });
});

test("the shares of all that wait are one together", () => {
  const tree = newTree({ interactive: 3, batch: 1 });
  const paths = [
    ["interactive", "a", "k"],
    ["interactive", "b", "k"],
    ["interactive", "b", "l"],
    ["batch", "a", "k"],
  ];
  for (const path of paths) add(tree, path, request(""));
  const shares = paths.map((path) => tree.shareOf(tree.leaf(path[0] as string, path.slice(1))));
  expect(shares).toEqual([0.375, 0.1875, 0.1875, 0.25]);
  // Beside the others that wait, a tenant that does not wait yet gets less than all of them.
  expect(tree.shareOf(tree.leaf("batch", ["b", "k"]))).toBe(0.125);
});

test("idle tenants are forgotten beyond a number, those that wait or are answered are not", () => {
  const tree = newTree();
  add(tree, ["default", "waits"], request("waits"));
  const busy = tree.leaf("default", ["busy"]);
  tree.answering(busy, 1);
  for (let index = 0; index < 20_000; index++) tree.charge(tree.leaf("default", [`t${index}`]), index % 2);
  const level = tree.root.children.get("default") as FairNode<Request>;
  expect(level.leaves.size).toBeLessThanOrEqual(4_096);
  expect(tree.leaf("default", ["busy"])).toBe(busy);
  expect(tree.next(always)?.item.tenant).toBe("waits");
});

/** An engine that answers up to `slots` requests at once, a token of each at a time. */
interface Load {
  slots: number;
  inputWeight: number;
  outputWeight: number;
  longestInput: number;
  longestOutput: number;
  lengths: readonly { input: number; output: number }[];
}

const loads: fc.Arbitrary<Load> = fc
  .record({
    slots: fc.integer({ min: 1, max: 12 }),
    // As in the paper, a token of the input weighs no more than one of the output.
    inputWeight: fc.constantFrom(0.1, 0.5, 1),
    outputWeight: fc.constantFrom(1, 2, 4),
    longestInput: fc.integer({ min: 1, max: 60 }),
    longestOutput: fc.integer({ min: 1, max: 60 }),
  })
  .chain((load) =>
    fc
      .array(
        fc.record({
          input: fc.integer({ min: 1, max: load.longestInput }),
          output: fc.integer({ min: 1, max: load.longestOutput }),
        }),
        { minLength: 4, maxLength: 40 },
      )
      .map((lengths) => ({ ...load, lengths })),
  );

function bound({ slots, inputWeight, outputWeight, longestInput, longestOutput }: Load): number {
  return 2 * Math.max(inputWeight * longestInput, outputWeight * slots * (longestInput + longestOutput));
}

/** Every tenant always has requests that wait. Gives the service that each path has had, after each token. */
function backlogged(
  tree: FairTree<Request>,
  paths: readonly (readonly string[])[],
  load: Load,
  after: (served: Map<string, number>) => void,
): void {
  const served = new Map(paths.map((path) => [path.join("/"), 0]));
  const running: { leaf: FairNode<Request>; left: number; tenant: string }[] = [];
  let drawn = 0;
  const refill = (path: readonly string[]) => {
    const tenant = path.join("/");
    const at = load.lengths[(drawn++ * 7 + tenant.length) % load.lengths.length] as { input: number; output: number };
    add(tree, path, request(tenant, at.input, at.output));
  };
  for (const path of paths) for (let count = 0; count < 2; count++) refill(path);
  const charge = (leaf: FairNode<Request>, tenant: string, tokens: number) => {
    tree.charge(leaf, tokens);
    served.set(tenant, (served.get(tenant) ?? 0) + tokens);
  };
  for (let step = 0; step < 400; step++) {
    while (running.length < load.slots) {
      const { leaf, item } = tree.next(always) as { leaf: FairNode<Request>; item: Request };
      refill(item.tenant.split("/"));
      tree.remove(leaf, item);
      charge(leaf, item.tenant, item.input * load.inputWeight);
      running.push({ leaf, left: item.output, tenant: item.tenant });
    }
    for (const one of running) {
      charge(one.leaf, one.tenant, load.outputWeight);
      one.left--;
    }
    for (let index = running.length - 1; index >= 0; index--) if (running[index]?.left === 0) running.splice(index, 1);
    after(served);
  }
}

/** The range of the difference between two numbers: how far apart their growth was in any interval. */
function differences() {
  let [least, most] = [0, 0];
  return (one: number, other: number): number => {
    least = Math.min(least, one - other);
    most = Math.max(most, one - other);
    return most - least;
  };
}

/** Theorem 4.4 of Sheng et al.: the service of two tenants in an interval in which both always wait. */
describe("the bound of the paper", () => {
  test("between tenants", () => {
    fc.assert(
      fc.property(loads, fc.integer({ min: 2, max: 5 }), (load, count) => {
        const paths = Array.from({ length: count }, (_, index) => ["default", `t${index}`]);
        const range = differences();
        backlogged(newTree(), paths, load, (served) => {
          const [one, other] = [...served.values()] as [number, number];
          expect(range(one, other)).toBeLessThanOrEqual(bound(load));
        });
      }),
    );
  });

  test("between organizations with one key and with many, and between the keys of one", () => {
    const paths = [
      ["default", "a", "k"],
      ["default", "b", "k"],
      ["default", "b", "l"],
      ["default", "b", "m"],
    ];
    fc.assert(
      fc.property(loads, (load) => {
        const [organizations, keys] = [differences(), differences()];
        backlogged(newTree(), paths, load, (served) => {
          const [alone, one, two, three] = [...served.values()] as [number, number, number, number];
          expect(organizations(alone, one + two + three)).toBeLessThanOrEqual(bound(load));
          expect(keys(one, three)).toBeLessThanOrEqual(bound(load));
        });
      }),
    );
  });

  test("between classes, by their weights", () => {
    fc.assert(
      fc.property(loads, fc.integer({ min: 1, max: 10 }), (load, weight) => {
        const tree = newTree({ interactive: weight });
        const range = differences();
        backlogged(
          tree,
          [
            ["interactive", "a"],
            ["default", "a"],
          ],
          load,
          (served) => {
            const [heavy, light] = [...served.values()] as [number, number];
            expect(range(heavy / weight, light)).toBeLessThanOrEqual(bound(load));
          },
        );
      }),
    );
  });
});
