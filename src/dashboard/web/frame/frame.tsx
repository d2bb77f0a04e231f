// What stands around every page, and the page inside it.

import { useEffect } from "preact/hooks";
import { useApp } from "../app/context.ts";
import { Button } from "../parts/button.tsx";
import { WithCurl } from "../parts/copy.tsx";
import { Notice } from "../parts/notice.tsx";
import { START_PAGE } from "../route.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { Navigation } from "./navigation.tsx";
import { PAGES, type PageName } from "./pages.ts";
import { SignIn } from "./sign-in.tsx";
import { ToastList } from "./toasts.tsx";
import { Topbar } from "./topbar.tsx";

export function Frame() {
  const { session, visits, actions } = useApp();
  const { number, route } = visits.current.value;
  const name = Object.hasOwn(PAGES, route.page) ? (route.page as PageName) : START_PAGE;
  const isIn = session.who.value !== undefined;
  const action = actions.open.value;
  return (
    <div class="app">
      <button type="button" class="skip" onClick={() => document.querySelector("main")?.focus()}>
        Skip to content
      </button>
      <Topbar hasRange={isIn && PAGES[name].hasRange === true} />
      {isIn && <Navigation current={name} />}
      <main tabIndex={-1} key={isIn ? "page" : "sign-in"}>
        {isIn ? <ShownPage key={number} name={name} /> : <Outside />}
      </main>
      {action !== undefined && <ActionDialog key={action} action={action} />}
      <ToastList />
    </div>
  );
}

function ShownPage({ name }: { name: PageName }) {
  // Screen readers announce the new page.
  useEffect(() => {
    window.scrollTo(0, 0);
    document.querySelector("h1")?.focus({ preventScroll: true });
  }, []);
  const Page = PAGES[name].page;
  return (
    <div class="page">
      <Page />
      <PageWithCurl />
    </div>
  );
}

/** A component of its own: what the page asks for may change with every key that is pressed. */
function PageWithCurl() {
  const { asks } = useApp();
  return <WithCurl title="This page with curl" requests={asks.all.value.flatMap((ask) => ask.request() ?? [])} />;
}

function Outside() {
  const { session } = useApp();
  const { value: failure } = session.failure;
  if (failure === undefined) return <SignIn />;
  return (
    <div class="page">
      <h1 tabIndex={-1}>Signalbox</h1>
      <Notice tone="bad" isAlert>
        {failure} It is asked again every few seconds.
      </Notice>
      <div class="row">
        <Button onClick={() => void session.begin()}>Try again</Button>
      </div>
    </div>
  );
}
