// A secret that the gateway has made, on the screen once.

import { CopyButton } from "../parts/copy.tsx";
import { Notice } from "../parts/notice.tsx";

export function secretIn(answer: unknown): string | undefined {
  const { secret } = answer as { secret?: unknown };
  return typeof secret === "string" ? secret : undefined;
}

export function ShownSecret({ secret }: { secret: string }) {
  return (
    <>
      <Notice tone="warn">
        This secret is shown once. Neither the gateway nor this page can show it again: copy it to where it is kept,
        now.
      </Notice>
      <div class="command">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by the keyboard, too */}
        <pre class="wrapped" tabIndex={0}>
          {secret}
        </pre>
        <CopyButton text={secret} what="the secret" />
      </div>
    </>
  );
}
