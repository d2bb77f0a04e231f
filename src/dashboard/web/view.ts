// Trees of elements as values, and what draws them: only what differs is changed, so that focus and scrolling stay. Every
// text becomes a text node; there is no way to bring markup in.

type Handler = (event: never) => void;

/**
 * Attributes by their names; `on…` are handlers; `value`, `checked` and `disabled` are properties; `vars` are custom
 * properties of CSS without their "--"; `made` is called once with the new element.
 */
interface Props {
  key?: string | undefined;
  class?: string | undefined;
  vars?: Readonly<Record<string, string | number>>;
  made?: (element: HTMLElement) => void;
  [name: string]: unknown;
}

export interface View {
  readonly tag: string;
  readonly props: Props;
  readonly children: readonly Drawable[];
}

type Drawable = View | string;
export type Children = View | string | number | null | undefined | false | readonly Children[];

export function h(tag: string, props: Props | null, ...children: readonly Children[]): View {
  return { tag, props: props ?? {}, children: flatten(children) };
}

/** What is left out keeps its place, so that what stands behind it is not taken for it. */
function flatten(children: readonly Children[]): Drawable[] {
  return children.flatMap((child): Drawable[] => {
    if (child === null || child === undefined || child === false) return [""];
    if (typeof child === "string" || typeof child === "number") return [String(child)];
    return isList(child) ? flatten(child) : [child];
  });
}

function isList(child: Children): child is readonly Children[] {
  return Array.isArray(child);
}

/** An element, and what it was drawn from. */
type Drawn = Element & { drawn?: View };

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES: readonly string[] = ["value", "checked", "disabled", "open"];

/** Makes the children of an element what the views say. */
export function draw(parent: Element, ...children: readonly Children[]): void {
  drawChildren(parent, flatten(children));
}

function drawChildren(parent: Element, wanted: readonly Drawable[]): void {
  const keyed = new Map<string, ChildNode>();
  const loose: ChildNode[] = [];
  for (const node of parent.childNodes) {
    const key = (node as ChildNode & { drawn?: View }).drawn?.props.key;
    if (key === undefined) loose.push(node);
    else keyed.set(key, node);
  }
  let next = 0;
  const nodes = wanted.map((view) => {
    const key = typeof view === "string" ? undefined : view.props.key;
    const old = key === undefined ? loose[next++] : keyed.get(key);
    if (key !== undefined) keyed.delete(key);
    return drawNode(parent, old, view);
  });
  const kept = new Set<ChildNode>(nodes);
  for (const node of [...parent.childNodes]) if (!kept.has(node)) node.remove();
  let cursor = parent.firstChild;
  for (const node of nodes) {
    if (node === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(node, cursor);
  }
}

function drawNode(parent: Element, old: ChildNode | undefined, view: Drawable): ChildNode {
  if (typeof view === "string") {
    if (!(old instanceof Text)) return document.createTextNode(view);
    if (old.data !== view) old.data = view;
    return old;
  }
  const isSame = old instanceof Element && (old as Drawn).drawn?.tag === view.tag;
  const element = isSame ? (old as Drawn) : create(parent, view);
  const before = isSame ? (element.drawn as View) : undefined;
  element.drawn = view;
  // The value of a select is one of its options, which have to be there.
  drawChildren(element, view.children);
  drawProps(element, before?.props ?? {}, view.props);
  const { made } = view.props;
  // Once it is in the page.
  if (before === undefined && made !== undefined) queueMicrotask(() => made(element as unknown as HTMLElement));
  return element;
}

function create(parent: Element, { tag }: View): Drawn {
  const isSvg = tag === "svg" || (parent.namespaceURI === SVG && parent.tagName !== "foreignObject");
  return isSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
}

function drawProps(element: Drawn, before: Props, props: Props): void {
  for (const name of Object.keys(before)) if (!(name in props)) drawProp(element, name, before[name], undefined);
  for (const [name, value] of Object.entries(props)) drawProp(element, name, before[name], value);
}

function drawProp(element: Drawn, name: string, before: unknown, value: unknown): void {
  if (name === "key" || name === "made") return;
  if (name === "vars") {
    drawVars(element as unknown as HTMLElement, (value ?? {}) as Record<string, string>);
    return;
  }
  if (name.startsWith("on")) {
    if (before === undefined && value !== undefined) listen(element, name);
    return;
  }
  if (PROPERTIES.includes(name) && name in element) {
    const held = element as unknown as Record<string, unknown>;
    const wanted = value ?? (name === "value" ? "" : false);
    if (held[name] !== wanted) held[name] = wanted;
    return;
  }
  if (before === value) return;
  if (value === undefined || value === null || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

function drawVars(element: HTMLElement, vars: Readonly<Record<string, string | number>>): void {
  for (const [name, value] of Object.entries(vars)) {
    const text = String(value);
    if (element.style.getPropertyValue(`--${name}`) !== text) element.style.setProperty(`--${name}`, text);
  }
}

/** One listener for an element's life; it calls the handler of the view that is drawn then. */
function listen(element: Drawn, name: string): void {
  element.addEventListener(name.slice(2), (event) => {
    const handler = element.drawn?.props[name] as Handler | undefined;
    handler?.(event as never);
  });
}
