// Short messages at the edge of the page, which are read out.

import { useApp } from "../app/context.ts";
import { Mark } from "../parts/marks.tsx";

export function ToastList() {
  const { toasts } = useApp();
  return (
    <div class="toasts" role="status">
      {toasts.shown.value.map(({ id, text, isBad }) => (
        <p key={id} class={isBad ? "toast bad" : "toast"}>
          <Mark tone={isBad ? "bad" : "good"} />
          <span>{text}</span>
        </p>
      ))}
    </div>
  );
}
