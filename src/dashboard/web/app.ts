// The whole of the dashboard: who is signed in, which page is shown, and what stands around it.

import type { SignedIn } from "../../admin/session.ts";
import { type ActionDialog, createActionDialog } from "./action-dialog.ts";
import { ApiError, createApi, messageOf } from "./api.ts";
import type { Page, PageContext } from "./context.ts";
import { type CurlRequest, curlOf } from "./curl.ts";
import { createLive, type LiveState } from "./live.ts";
import { icon, marked } from "./marks.ts";
import { PAGES, type PageName } from "./pages.ts";
import { commandLine } from "./parts.ts";
import { linkTo, parseRoute, START_PAGE } from "./route.ts";
import { createSignIn } from "./sign-in.ts";
import { readTheme, switchTheme, type Theme } from "./themes.ts";
import { createToasts } from "./toasts.ts";
import { type Children, draw, h } from "./view.ts";

const THEMES: Readonly<Record<Theme, string>> = { auto: "Auto", light: "Light", dark: "Dark" };

const LIVE: Readonly<Record<LiveState, { tone: "good" | "bad" | "busy" | "quiet"; text: string; title: string }>> = {
  live: { tone: "good", text: "Live", title: "What happens is shown as it happens" },
  connecting: { tone: "busy", text: "Connecting", title: "The live connection is being opened" },
  lost: {
    tone: "bad",
    text: "Not live",
    title: "The live connection is lost and is being tried again: what is shown may be old",
  },
  resting: { tone: "quiet", text: "Resting", title: "Goes on when this page is seen again" },
  closed: { tone: "quiet", text: "Signed out", title: "Nobody is signed in" },
};

/** Another tab has signed in or out. */
type Word = "signed-in" | "signed-out";

/** What is shown now. */
interface Shown {
  name: PageName;
  context: PageContext;
  page: Page;
  leave(): void;
}

/**
 * Long because these functions share what is shown.
 * @param base - address of the root of the gateway
 */
export function createApp(base: string) {
  let session: SignedIn | undefined;
  let failure: string | undefined;
  let shown: Shown | undefined;
  let isDue = false;
  let dialog: ActionDialog | undefined;
  const drafts: PageContext["drafts"] = new Map();
  const root = document.body;
  const tabs = new BroadcastChannel("signalbox");
  const toasts = createToasts(redraw);
  const api = createApi(base, signedOut);
  const signIn = createSignIn({ api, redraw, signedIn });
  const live = createLive({
    url: new URL("admin/events", base).href,
    changed: redraw,
    // Asking for anything tells whether the sign-in is over.
    lost: () => void api.get("admin/session").catch(() => {}),
  });

  function redraw(): void {
    if (isDue) return;
    isDue = true;
    const drawNow = () => {
      isDue = false;
      draw(root, view());
    };
    // A hidden page gets no frames; after a sign-out in another tab it must be empty all the same.
    if (document.hidden) setTimeout(drawNow, 0);
    else requestAnimationFrame(drawNow);
  }

  async function begin(): Promise<void> {
    failure = undefined;
    try {
      enter(await api.get<SignedIn>("admin/session"));
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || thrown.status === 401) return;
      failure = thrown.message;
      redraw();
    }
  }

  function enter(who: SignedIn): void {
    session = who;
    signIn.close();
    live.open();
    if (shown === undefined) show();
    else refresh();
    redraw();
  }

  function signedIn(who: SignedIn): void {
    tell("signed-in");
    enter(who);
    focusHeading();
  }

  function signedOut(error: ApiError): void {
    const wasIn = session !== undefined;
    session = undefined;
    dialog = undefined;
    live.close();
    signIn.open(
      String(error.details.method ?? ""),
      wasIn ? "This sign-in is over. Sign in again to go on here." : undefined,
    );
    redraw();
  }

  async function leave(): Promise<void> {
    try {
      await api.ask({ method: "DELETE", path: "admin/session" });
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || thrown.status !== 401) {
        toasts.say(`Not signed out: ${messageOf(thrown)}`, true);
        return;
      }
    }
    tell("signed-out");
    drafts.clear();
    shown?.leave();
    shown = undefined;
    await api.get("admin/session").catch(() => {});
  }

  function tell(word: Word): void {
    tabs.postMessage(word);
  }

  function show(): void {
    const route = parseRoute(location.hash);
    const name = Object.hasOwn(PAGES, route.page) ? (route.page as PageName) : START_PAGE;
    const isOther = shown?.name !== name || shown.context.route.id !== route.id;
    shown?.leave();
    dialog = undefined;
    const ends: (() => void)[] = [];
    const context: PageContext = {
      ...{ api, route, live, redraw, say: toasts.say },
      session: session as SignedIn,
      act(action) {
        dialog = createActionDialog({
          ...{ api, action, redraw },
          curl: context.curl,
          say: toasts.say,
          closed(isDone) {
            dialog = undefined;
            if (isDone) refresh();
            redraw();
          },
        });
        redraw();
      },
      curl: (asked) => curlOf(asked, base, needsAuth(asked)),
      onLeave: (end) => ends.push(end),
      now: api.now,
      drafts,
      asks: new Map(),
    };
    const page = PAGES[name].make(context);
    shown = { name, context, page, leave: () => ends.forEach((end) => void end()) };
    document.title = `${page.title} · Signalbox`;
    redraw();
    if (isOther) {
      window.scrollTo(0, 0);
      showInNavigation();
      focusHeading();
    }
  }

  function needsAuth({ path }: CurlRequest): boolean {
    return path.startsWith("admin/") && session?.method !== "none";
  }

  function refresh(): void {
    for (const each of shown?.context.asks.keys() ?? []) (each as { refresh?(): void }).refresh?.();
  }

  /** Where the navigation is wider than the screen. */
  function showInNavigation(): void {
    requestAnimationFrame(() =>
      requestAnimationFrame(() =>
        document.querySelector(".app > nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }),
      ),
    );
  }

  /** Screen readers announce the new page. */
  function focusHeading(): void {
    requestAnimationFrame(() =>
      requestAnimationFrame(() => document.querySelector("h1")?.focus({ preventScroll: true })),
    );
  }

  function view(): Children {
    const isIn = session !== undefined;
    return h(
      "div",
      { class: "app" },
      h(
        "button",
        { type: "button", class: "skip", onclick: () => document.querySelector("main")?.focus() },
        "Skip to content",
      ),
      header(),
      isIn && navigation(shown?.name),
      h("main", { tabindex: "-1", key: isIn ? "page" : "sign-in" }, isIn ? content() : outside()),
      dialog?.view(),
      toasts.view(),
    );
  }

  function header(): Children {
    const { tone, text, title } = LIVE[live.state];
    const theme = readTheme();
    return h(
      "header",
      { class: "topbar" },
      h("a", { class: "brand", href: linkTo(START_PAGE) }, signal(), h("span", null, "Signalbox")),
      h("span", { class: "host" }, location.host),
      h("span", { class: `live ${tone}`, role: "status", title }, marked(tone, text)),
      h(
        "button",
        {
          type: "button",
          class: "small theme",
          title: "Colours: light, dark, or as the system has them",
          "aria-label": `Colours: ${THEMES[theme]}. Switch`,
          onclick: () => {
            switchTheme();
            redraw();
          },
        },
        icon("theme"),
        h("span", null, THEMES[theme]),
      ),
      session !== undefined && session.via === "session" && h("span", { class: "signed-in" }, session.name ?? ""),
      session !== undefined &&
        session.via === "session" &&
        h("button", { type: "button", class: "small", onclick: () => void leave() }, "Sign out"),
    );
  }

  function content(): Children {
    if (shown === undefined) return null;
    const { page, context } = shown;
    return h("div", { class: "page", key: shown.name }, page.view(), footer(context));
  }

  function outside(): Children {
    if (failure === undefined) return signIn.view();
    return h(
      "div",
      { class: "page" },
      h("h1", { tabindex: "-1" }, "Signalbox"),
      h("p", { class: "notice bad", role: "alert" }, failure),
      h("button", { type: "button", onclick: () => void begin() }, "Try again"),
    );
  }

  return {
    start(): void {
      window.addEventListener("hashchange", () => {
        if (session !== undefined) show();
      });
      window.addEventListener("beforeunload", (event) => {
        if (drafts.size > 0) event.preventDefault();
      });
      tabs.onmessage = ({ data }: MessageEvent<Word>) => {
        const isNews = data === "signed-in" ? session === undefined : session !== undefined;
        if (isNews) void begin();
      };
      // Times such as "5 s ago".
      setInterval(() => {
        if (!document.hidden) redraw();
      }, 1_000);
      draw(root, view());
      void begin();
    },
  };
}

function navigation(current: PageName | undefined): Children {
  const links = Object.entries(PAGES).flatMap(([name, { label, under }]) => {
    if (under !== undefined) return [];
    const isCurrent = name === current || (current !== undefined && PAGES[current].under === name);
    const attributes = { href: linkTo(name), "aria-current": isCurrent ? "page" : undefined };
    return [
      h("li", { key: name }, h("a", attributes, icon(name as Parameters<typeof icon>[0]), h("span", null, label))),
    ];
  });
  return h("nav", { "aria-label": "Pages" }, h("ul", null, links));
}

/** What the page has asked, for a shell. */
function footer(context: PageContext): Children {
  const asked = [...context.asks.values()].flatMap((ask) => ask() ?? []);
  const lines = [...new Set(asked.map(context.curl))];
  if (lines.length === 0) return null;
  return h(
    "details",
    { class: "asked" },
    h("summary", null, "This page with curl"),
    lines.map((line) => commandLine(context, line)),
  );
}

/** The picture of the gateway. */
function signal(): Children {
  return h(
    "svg",
    { class: "signal", viewBox: "0 0 16 16", "aria-hidden": "true" },
    h("rect", { width: 16, height: 16, rx: 4, class: "signal-box" }),
    h("circle", { cx: 8, cy: 4.6, r: 2.1, class: "signal-stop" }),
    h("circle", { cx: 8, cy: 11.4, r: 2.1, class: "signal-go" }),
  );
}
