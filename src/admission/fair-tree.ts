// Decides who is next: a virtual counter of the service that each tenant has had, in tokens, at every level of a hierarchy
// (Sheng et al., Fairness in Serving Large Language Models, OSDI 2024). Pure: it knows no clock and no backends.

/** Something that waits in the tree. */
export interface FairItem {
  /** Items of one tenant are served in this order: the smaller number first. */
  readonly order: number;
  /** What it will cost, in weighted tokens, as far as it is known. */
  readonly cost: number;
}

/** A class, an organization, a key: one level of the path to a tenant. A leaf has the items. */
export interface FairNode<Item> {
  readonly parent: FairNode<Item> | undefined;
  readonly name: string;
  /** Weighted service that it has had; only differences between siblings mean something. */
  served: number;
  /** Items that wait below it, and what they will cost. */
  waiting: number;
  waitingCost: number;
  /** Requests below it that are being answered. */
  inFlight: number;
  /** Of a leaf: what its input has cost, by its last requests, for each weighted token that was expected. */
  inputFactor: number;
  /** Of a leaf: how many requests that was learned from, as far as it matters. */
  inputsSeen: number;
  readonly children: FairNodes<Item>;
  /** Children that have items: apart, because a change of the levels makes a tenant of what was a level, and the other way round. */
  readonly leaves: FairNodes<Item>;
  /** Children with something that waits. */
  readonly active: FairNode<Item>[];
  /** The counter of the child that stopped waiting last. */
  lastServed: number;
  /** Of a leaf: in their order. */
  readonly items: Item[];
}

type FairNodes<Item> = Map<string, FairNode<Item>>;

/** Idle tenants whose counters are remembered at each level. */
const MOST_CHILDREN = 4_096;

export class FairTree<Item extends FairItem> {
  readonly root: FairNode<Item> = newNode<Item>(undefined, "");
  readonly #weightOf: (className: string) => number;

  /** @param weightOf - of a name at the first level; at the others all weigh the same */
  constructor(weightOf: (className: string) => number) {
    this.#weightOf = weightOf;
  }

  get waiting(): number {
    return this.root.waiting;
  }

  /** The leaf of a tenant, which stays known while something of it waits or is answered. */
  leaf(className: string, tenant: readonly string[]): FairNode<Item> {
    let node = childOf(this.root, this.root.children, className);
    const last = tenant.length - 1;
    for (let level = 0; level < last; level++) node = childOf(node, node.children, tenant[level] as string);
    return childOf(node, node.leaves, tenant[last] ?? "");
  }

  add(leaf: FairNode<Item>, item: Item): void {
    const { items } = leaf;
    let at = items.length;
    while (at > 0 && (items[at - 1] as Item).order > item.order) at--;
    items.splice(at, 0, item);
    for (let node = leaf; node.parent !== undefined; node = node.parent) {
      if (node.waiting === 0) lift(node, node.parent, item.cost / this.#weightAt(node));
      node.waiting++;
      node.waitingCost += item.cost;
    }
    this.root.waiting++;
    this.root.waitingCost += item.cost;
  }

  /** False where it does not wait. */
  remove(leaf: FairNode<Item>, item: Item): boolean {
    const at = leaf.items.indexOf(item);
    if (at < 0) return false;
    leaf.items.splice(at, 1);
    for (let node = leaf; node.parent !== undefined; node = node.parent) {
      node.waiting--;
      node.waitingCost -= item.cost;
      if (node.waiting > 0) continue;
      const { active } = node.parent;
      active[active.indexOf(node)] = active.at(-1) as FairNode<Item>;
      active.pop();
      node.parent.lastServed = node.served;
    }
    this.root.waiting--;
    this.root.waitingCost -= item.cost;
    return true;
  }

  /** Service of a tenant, in tokens. */
  charge(leaf: FairNode<Item>, tokens: number): void {
    for (let node = leaf; node.parent !== undefined; node = node.parent) {
      node.served += tokens / this.#weightAt(node);
    }
  }

  /**
   * Gives back what was charged too much, as far as the tenant does not come more than one request before the least of the others that
   * wait.
   *
   * @param cost - of that request
   */
  giveBack(leaf: FairNode<Item>, tokens: number, cost: number): void {
    for (let node = leaf; node.parent !== undefined; node = node.parent) {
      const weight = this.#weightAt(node);
      const others = leastServed(node.parent.active, node);
      const least = others === Number.POSITIVE_INFINITY ? Number.NEGATIVE_INFINITY : others - cost / weight;
      node.served = Math.max(node.served - tokens / weight, Math.min(node.served, least));
    }
  }

  /** One more request of the tenant is answered; -1: one less. */
  answering(leaf: FairNode<Item>, change: 1 | -1): void {
    for (let node: FairNode<Item> | undefined = leaf; node !== undefined; node = node.parent) node.inFlight += change;
  }

  /** The item whose tenant has had the least, among those that may be served now. */
  next(may: (item: Item) => boolean): { leaf: FairNode<Item>; item: Item } | undefined {
    return nextBelow(this.root, may);
  }

  /** The tenant with the most items for its weight, which gives up its last one where there is room for no more. */
  largest(): FairNode<Item> | undefined {
    let node = this.root;
    while (node.active.length > 0) {
      let most = node.active[0] as FairNode<Item>;
      for (const child of node.active) if (this.#sizeOf(child) > this.#sizeOf(most)) most = child;
      node = most;
    }
    return node === this.root ? undefined : node;
  }

  /** True if the first tenant has less that waits, for its weight and with one item more, than the second one has. */
  isSmaller(leaf: FairNode<Item>, than: FairNode<Item>): boolean {
    // Those that waited when the levels of the hierarchy were changed stand at other depths.
    const [path, others] = [pathOf(leaf), pathOf(than)];
    const at = path.findIndex((node, depth) => node !== others[depth]);
    const [own, other] = [path[at], others[at]];
    if (own === undefined || other === undefined) return false;
    return (own.waiting + 1) / this.#weightAt(own) <= (other.waiting - 1) / this.#weightAt(other);
  }

  /** The part of all service that a tenant gets while all that wait now go on waiting. */
  shareOf(leaf: FairNode<Item>): number {
    let share = 1;
    for (let node = leaf; node.parent !== undefined; node = node.parent) {
      const own = this.#weightAt(node);
      let all = node.waiting > 0 ? 0 : own;
      for (const sibling of node.parent.active) all += this.#weightAt(sibling);
      share *= own / all;
    }
    return share;
  }

  #weightAt({ parent, name }: FairNode<Item>): number {
    return parent === this.root ? this.#weightOf(name) : 1;
  }

  #sizeOf(node: FairNode<Item>): number {
    return node.waiting / this.#weightAt(node);
  }
}

/** From the first level down to the node itself. */
function pathOf<Item>(leaf: FairNode<Item>): FairNode<Item>[] {
  const path: FairNode<Item>[] = [];
  for (let node = leaf; node.parent !== undefined; node = node.parent) path.push(node);
  return path.reverse();
}

/** @param siblings - of the parent: its children or its leaves */
function childOf<Item>(parent: FairNode<Item>, siblings: FairNodes<Item>, name: string): FairNode<Item> {
  const known = siblings.get(name);
  if (known !== undefined) return known;
  if (siblings.size >= MOST_CHILDREN) forgetIdle(siblings, floorOf(parent));
  const child = newNode(parent, name);
  siblings.set(name, child);
  return child;
}

function newNode<Item>(parent: FairNode<Item> | undefined, name: string): FairNode<Item> {
  return {
    ...{ parent, name, served: 0, waiting: 0, waitingCost: 0, inFlight: 0, lastServed: 0 },
    ...{ inputFactor: 1, inputsSeen: 0 },
    ...{ children: new Map(), leaves: new Map(), active: [], items: [] },
  };
}

/**
 * It begins to wait: what it did not use before is not saved up, but for one request. Else it would have as much as the least of the
 * others, and wait for them whenever one of them gets back what it was charged too much.
 */
function lift<Item>(node: FairNode<Item>, parent: FairNode<Item>, credit: number): void {
  node.served = Math.max(node.served, floorOf(parent) - credit);
  parent.active.push(node);
}

/** The least service among the children that wait. */
function floorOf<Item>({ active, lastServed }: FairNode<Item>): number {
  if (active.length === 0) return lastServed;
  return leastServed(active);
}

/** Infinite where no other one waits. */
function leastServed<Item>(nodes: readonly FairNode<Item>[], except?: FairNode<Item>): number {
  let least = Number.POSITIVE_INFINITY;
  for (const node of nodes) if (node !== except) least = Math.min(least, node.served);
  return least;
}

function nextBelow<Item extends FairItem>(
  node: FairNode<Item>,
  may: (item: Item) => boolean,
): { leaf: FairNode<Item>; item: Item } | undefined {
  const { active, items } = node;
  if (active.length === 0) {
    const item = items.find(may);
    return item && { leaf: node, item };
  }
  let least = active[0] as FairNode<Item>;
  for (const child of active) if (isBehind(child, least)) least = child;
  const found = nextBelow(least, may);
  if (found !== undefined || active.length === 1) return found;
  // Nothing of it may be served now: the others come in the order of their service.
  for (const child of active.toSorted((one, other) => one.served - other.served)) {
    const other = child === least ? undefined : nextBelow(child, may);
    if (other !== undefined) return other;
  }
  return undefined;
}

/** One that begins to wait has as much as the least of those that wait: fewer requests under way tell it from them. */
function isBehind<Item>(one: FairNode<Item>, other: FairNode<Item>): boolean {
  return one.served < other.served || (one.served === other.served && one.inFlight < other.inFlight);
}

/** First those without a debt; where that leaves no room, every tenant without a request. */
function forgetIdle<Item>(siblings: FairNodes<Item>, floor: number): void {
  const isIdle = ({ waiting, inFlight }: FairNode<Item>) => waiting === 0 && inFlight === 0;
  for (const [name, child] of siblings) {
    if (isIdle(child) && child.served <= floor) siblings.delete(name);
  }
  if (siblings.size < MOST_CHILDREN) return;
  for (const [name, child] of siblings) if (isIdle(child)) siblings.delete(name);
}
