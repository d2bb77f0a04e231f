// The bar at the top: which gateway, whether what is shown is live, the colours, and who is signed in.

import { useApp } from "../app/context.ts";
import type { LiveState } from "../app/live.ts";
import { Button } from "../parts/button.tsx";
import { Icon } from "../parts/icon.tsx";
import { Marked, type MarkTone } from "../parts/marks.tsx";
import { linkTo, START_PAGE } from "../route.ts";
import type { Theme } from "../themes.ts";
import { Palette } from "./palette.tsx";
import { RangePicker } from "./range-picker.tsx";

const THEMES: Readonly<Record<Theme, string>> = { auto: "Auto", light: "Light", dark: "Dark" };

const LIVE: Readonly<Record<LiveState, { tone: MarkTone; text: string; title: string }>> = {
  live: { tone: "good", text: "Live", title: "Events are shown as they happen" },
  connecting: { tone: "busy", text: "Connecting", title: "The live connection is being opened" },
  lost: {
    tone: "bad",
    text: "Not live",
    title: "The live connection is lost and is being opened again: what is shown may be old",
  },
  resting: { tone: "quiet", text: "Resting", title: "Goes on when this page is seen again" },
  closed: { tone: "quiet", text: "Signed out", title: "The live connection needs a sign-in" },
};

export function Topbar({ hasRange }: { hasRange: boolean }) {
  const { live, session, themes } = useApp();
  const { tone, text, title } = LIVE[live.state.value];
  const theme = THEMES[themes.chosen.value];
  const who = session.who.value;
  return (
    <header class="topbar">
      <a class="brand" href={linkTo(START_PAGE)}>
        <Signal />
        <span>Signalbox</span>
      </a>
      <span class="host">{location.host}</span>
      <span class={`live ${tone}`} role="status" title={title}>
        <Marked tone={tone} text={text} />
      </span>
      {who !== undefined && <Palette />}
      {hasRange && <RangePicker />}
      <button
        type="button"
        class="small theme"
        title="Colours: light, dark, or as the system has them"
        aria-label={`Colours: ${theme}. Switch`}
        onClick={themes.next}
      >
        <Icon name="theme" />
        <span>{theme}</span>
      </button>
      {who?.via === "session" && (
        <>
          <span class="signed-in">
            {who.name ?? ""} ({who.role})
          </span>
          <Button kind="small" onClick={() => void session.signOut()}>
            Sign out
          </Button>
        </>
      )}
    </header>
  );
}

/** The picture of the gateway. */
function Signal() {
  return (
    <svg class="signal" viewBox="0 0 16 16" aria-hidden="true">
      <rect width="16" height="16" rx="4" class="signal-box" />
      <circle cx="8" cy="4.6" r="2.1" class="signal-stop" />
      <circle cx="8" cy="11.4" r="2.1" class="signal-go" />
    </svg>
  );
}
