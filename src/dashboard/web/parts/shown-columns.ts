// Which columns of a list are hidden, remembered by the browser.

const KEY = "signalbox.hidden-columns";
const MOST_TITLES = 50;

/** By the name of the list. */
type Hidden = Readonly<Record<string, readonly string[]>>;

export function readHidden(list: string): readonly string[] {
  const titles: unknown = readAll()[list];
  return Array.isArray(titles) ? titles.filter((title) => typeof title === "string").slice(0, MOST_TITLES) : [];
}

export function writeHidden(list: string, titles: readonly string[]): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...readAll(), [list]: titles }));
  } catch {
    // Not remembered: the browser gives this page no storage.
  }
}

function readAll(): Hidden {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof value === "object" && value !== null ? (value as Hidden) : {};
  } catch {
    return {};
  }
}
