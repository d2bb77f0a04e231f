// Short messages at the edge of the page, which go by themselves and are read out.

import { mark } from "./marks.ts";
import { h, type View } from "./view.ts";

const SHOWN_MS = 6_000;
const MOST = 4;

export function createToasts(redraw: () => void) {
  let toasts: { id: number; text: string; isBad: boolean }[] = [];
  let lastId = 0;

  return {
    say(text: string, isBad = false): void {
      const toast = { id: ++lastId, text, isBad };
      toasts = [...toasts, toast].slice(-MOST);
      setTimeout(() => {
        toasts = toasts.filter((each) => each !== toast);
        redraw();
      }, SHOWN_MS);
      redraw();
    },
    view(): View {
      return h(
        "div",
        { class: "toasts", role: "status" },
        toasts.map(({ id, text, isBad }) =>
          h(
            "p",
            { key: String(id), class: isBad ? "toast bad" : "toast" },
            mark(isBad ? "bad" : "good"),
            h("span", null, text),
          ),
        ),
      );
    },
  };
}
