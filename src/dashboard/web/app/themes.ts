// The colours that the user has chosen, and whether they are light or dark now.

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { readTheme, switchTheme, type Theme } from "../themes.ts";

export type Themes = ReturnType<typeof createThemes>;

export function createThemes() {
  const chosen = signal<Theme>(readTheme());
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isSystemDark = signal(system.matches);
  system.addEventListener("change", () => {
    isSystemDark.value = system.matches;
  });
  return {
    chosen: chosen as ReadonlySignal<Theme>,
    isDark: computed(() => (chosen.value === "auto" ? isSystemDark.value : chosen.value === "dark")),
    next(): void {
      chosen.value = switchTheme();
    },
  };
}
