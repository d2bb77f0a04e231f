// Texts to copy: a button, and a command line with one beside it.

import { useApp } from "../app/context.ts";
import type { Toasts } from "../app/toasts.ts";
import type { CurlRequest } from "../curl.ts";
import { Button } from "./button.tsx";

interface CopyProps {
  text: string;
  /** As the message names it: "the command". */
  what: string;
  caption?: string;
}

export function CopyButton({ text, what, caption }: CopyProps) {
  const { toasts } = useApp();
  return (
    <Button
      kind="small"
      label={caption === undefined ? `Copy ${what}` : undefined}
      onClick={() => void copy(toasts, text, what)}
    >
      {caption ?? "Copy"}
    </Button>
  );
}

async function copy({ say }: Toasts, text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${what}.`);
  } catch {
    // Browsers give the clipboard to pages of https and of this machine only.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    say(isCopied ? `Copied ${what}.` : "The browser does not let this page copy.", !isCopied);
  }
}

export function CommandLine({ text }: { text: string }) {
  return (
    <div class="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by the keyboard, too */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} what="the command" />
    </div>
  );
}

interface WithCurlProps {
  title: string;
  requests: readonly CurlRequest[];
}

/** Requests as commands for a shell. */
export function WithCurl({ title, requests }: WithCurlProps) {
  const { curl } = useApp();
  const lines = [...new Set(requests.map(curl))];
  if (lines.length === 0) return null;
  return (
    <details class="asked">
      <summary>{title}</summary>
      {lines.map((line) => (
        <CommandLine key={line} text={line} />
      ))}
    </details>
  );
}
