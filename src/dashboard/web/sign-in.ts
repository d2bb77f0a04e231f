// Signing in, by what admin.auth.method wants. What is typed is sent once and kept nowhere; the browser keeps a cookie that
// scripts cannot read.

import type { SignedIn } from "../../admin/session.ts";
import { type Api, ApiError, messageOf } from "./api.ts";
import { field, notice } from "./parts.ts";
import { type Children, h } from "./view.ts";

interface SignInParts {
  api: Api;
  redraw(): void;
  signedIn(who: SignedIn): void;
}

interface Wanted {
  text: string;
  fields: readonly { name: string; label: string; type: string; autocomplete: string }[];
}

const METHODS: Readonly<Record<string, Wanted>> = {
  bearer_token: {
    text: "This gateway wants its admin token.",
    fields: [{ name: "token", label: "Token", type: "password", autocomplete: "current-password" }],
  },
  basic: {
    text: "This gateway wants a user name and a password.",
    fields: [
      { name: "username", label: "User name", type: "text", autocomplete: "username" },
      { name: "password", label: "Password", type: "password", autocomplete: "current-password" },
    ],
  },
  api_key: {
    text: "This gateway wants an API key with the scope admin.",
    fields: [{ name: "key", label: "API key", type: "password", autocomplete: "current-password" }],
  },
};

export function createSignIn({ api, redraw, signedIn }: SignInParts) {
  let method: string | undefined;
  let why: string | undefined;
  let values: Record<string, string> = {};
  let thrown: unknown;
  let isBusy = false;

  async function send(event: Event): Promise<void> {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    thrown = undefined;
    redraw();
    const given = values;
    try {
      signedIn(await api.ask<SignedIn>({ method: "POST", path: "admin/session", body: given }));
    } catch (error) {
      thrown = error;
    }
    isBusy = false;
    redraw();
  }

  function message(): Children {
    if (thrown !== undefined) return h("div", { role: "alert" }, notice("bad", textOf(thrown)));
    return why === undefined ? null : notice("warn", why);
  }

  return {
    open(wanted: string, reason: string | undefined): void {
      // A wrong password is shown as what it is, not as a sign-in that is over.
      if (method === wanted && reason === undefined) return;
      method = wanted;
      why = reason;
      thrown = undefined;
    },
    close(): void {
      method = undefined;
      values = {};
      thrown = undefined;
    },
    view(): Children {
      if (method === undefined) return null;
      const wanted = METHODS[method] ?? (METHODS.bearer_token as Wanted);
      return h(
        "form",
        { class: "sign-in card", onsubmit: (event: Event) => void send(event) },
        h("h1", { tabindex: "-1" }, "Sign in"),
        h("p", null, wanted.text),
        message(),
        wanted.fields.map(({ name, label, ...rest }, index) =>
          field(
            name,
            label,
            values[name] ?? "",
            (value) => {
              values = { ...values, [name]: value };
            },
            { ...rest, isRequired: true, ...(index === 0 && { made: (element: HTMLElement) => element.focus() }) },
          ),
        ),
        h("div", { class: "row end" }, h("button", { type: "submit", class: "main", disabled: isBusy }, "Sign in")),
      );
    },
  };
}

function textOf(thrown: unknown): string {
  if (!(thrown instanceof ApiError)) return messageOf(thrown);
  if (thrown.status === 401) return "That is not right.";
  if (thrown.status === 429) return `Too many wrong attempts: wait ${thrown.retryAfterSeconds ?? 10} s and try again.`;
  return thrown.message;
}
