// The parts of the dashboard that are no pictures: what asks the gateway, what is known, and what is going on.

import { type CurlRequest, curlOf } from "../curl.ts";
import { type Actions, createActions } from "./actions.ts";
import { type Api, createApi } from "./api.ts";
import { type Asks, createAsks } from "./asks.ts";
import { createClock, type PageClock } from "./clock.ts";
import { createDrafts, type Drafts } from "./drafts.ts";
import { createLive, type Live } from "./live.ts";
import { createRange, type PageRange } from "./range.ts";
import { type BrowserSession, createSession } from "./session.ts";
import { createThemes, type Themes } from "./themes.ts";
import { createToasts, type Toasts } from "./toasts.ts";
import { createVisits, type Visits } from "./visits.ts";

export interface App {
  api: Api;
  live: Live;
  session: BrowserSession;
  visits: Visits;
  actions: Actions;
  asks: Asks;
  toasts: Toasts;
  drafts: Drafts;
  clock: PageClock;
  range: PageRange;
  themes: Themes;
  /** A command line for a request. */
  curl(asked: CurlRequest): string;
}

/** @param base - address of the root of the gateway */
export function createApp(base: string): App {
  const toasts = createToasts();
  const actions = createActions();
  const drafts = createDrafts();
  const visits = createVisits(actions.close);
  const api = createApi(base, (error) => session.lost(error));
  const live = createLive({
    url: new URL("admin/events", base).href,
    // Any request shows whether the sign-in is over.
    lost: () => void api.get("admin/session").catch(() => {}),
  });
  const session = createSession({
    api,
    entered: live.open,
    left() {
      drafts.clear();
      visits.visitAgain();
    },
    ended() {
      live.close();
      actions.close();
    },
    stayed: (why) => toasts.say(`Not signed out: ${why}`, true),
  });
  window.addEventListener("beforeunload", (event) => {
    if (!drafts.isEmpty()) event.preventDefault();
  });
  const clock = createClock(api.now);
  return {
    ...{ clock, api, live, session, visits, actions, toasts, drafts },
    asks: createAsks(),
    range: createRange(clock, visits),
    themes: createThemes(),
    curl(asked) {
      const needsAuth = asked.path.startsWith("admin/") && session.who.value?.method !== "none";
      return curlOf(asked, base, needsAuth);
    },
  };
}
