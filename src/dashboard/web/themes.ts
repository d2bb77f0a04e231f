// Light, dark, or as the system has it: kept in the browser.

export type Theme = "auto" | "light" | "dark";

const STORED_AS = "signalbox-theme";
const NEXT: Readonly<Record<Theme, Theme>> = { auto: "light", light: "dark", dark: "auto" };

export function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(STORED_AS);
    return stored === "light" || stored === "dark" ? stored : "auto";
  } catch {
    return "auto"; // a browser that keeps nothing
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Returns the theme that is in force now. */
export function switchTheme(): Theme {
  const next = NEXT[readTheme()];
  try {
    if (next === "auto") localStorage.removeItem(STORED_AS);
    else localStorage.setItem(STORED_AS, next);
  } catch {} // it holds for this page then
  applyTheme(next);
  return next;
}
