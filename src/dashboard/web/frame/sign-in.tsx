// Signing in, by what admin.auth.method wants. What is typed is sent once and kept nowhere; the browser keeps a cookie that
// scripts cannot read.

import { useSignal } from "@preact/signals";
import type { SignInFailure } from "../../../admin/oidc.ts";
import { ApiError, messageOf } from "../app/api.ts";
import { useApp } from "../app/context.ts";
import { Field } from "../parts/field.tsx";
import { Notice } from "../parts/notice.tsx";

/** The gateway takes no longer page to come back to. */
const LONGEST_PAGE = 2_000;

interface SignInForm {
  text: string;
  /** Of credentials that are not accepted. */
  wrong: string;
  fields: readonly { name: string; label: string; type: "text" | "password"; autocomplete: string }[];
}

const METHODS: Readonly<Record<string, SignInForm>> = {
  bearer_token: {
    text: "Enter the admin token of this gateway.",
    wrong: "Wrong token.",
    fields: [{ name: "token", label: "Token", type: "password", autocomplete: "current-password" }],
  },
  basic: {
    text: "Enter your user name and password.",
    wrong: "Wrong user name or password.",
    fields: [
      { name: "username", label: "User name", type: "text", autocomplete: "username" },
      { name: "password", label: "Password", type: "password", autocomplete: "current-password" },
    ],
  },
  api_key: {
    text: "Enter an API key with the scope admin.",
    wrong: "Wrong API key, or a key without the scope admin.",
    fields: [{ name: "key", label: "API key", type: "password", autocomplete: "current-password" }],
  },
};

export function SignIn() {
  const { session, api } = useApp();
  const values = useSignal<Readonly<Record<string, string>>>({});
  const thrown = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);
  const wanted = session.wanted.value;
  if (wanted === undefined) return null;

  async function send(): Promise<void> {
    if (isBusy.peek()) return;
    isBusy.value = true;
    thrown.value = undefined;
    await session.signIn(values.peek()).catch((error: unknown) => {
      thrown.value = error;
    });
    isBusy.value = false;
  }

  if (wanted.method === "oidc") return <ProviderSignIn base={api.base} provider={wanted.provider} why={wanted.why} />;
  const { text, wrong, fields } = METHODS[wanted.method] ?? (METHODS.bearer_token as SignInForm);
  return (
    <form
      class="sign-in card"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <h1 tabIndex={-1}>Sign in</h1>
      <p>{text}</p>
      {thrown.value !== undefined ? (
        <Notice tone="bad" isAlert>
          {textOf(thrown.value, wrong)}
        </Notice>
      ) : (
        wanted.why !== undefined && <Notice tone="warn">{wanted.why}</Notice>
      )}
      {fields.map(({ name, ...rest }, index) => (
        <Field
          key={name}
          {...rest}
          id={name}
          value={values.value[name] ?? ""}
          set={(value) => {
            values.value = { ...values.peek(), [name]: value };
          }}
          isRequired
          isFirst={index === 0}
        />
      ))}
      <div class="row end">
        <button type="submit" class="main" disabled={isBusy.value}>
          Sign in
        </button>
      </div>
    </form>
  );
}

/** Why a browser comes back from the provider without a sign-in. */
const FAILURES: Readonly<Record<SignInFailure, string>> = {
  unreachable: "The OpenID provider does not answer. Try again in a moment; the log of the gateway has the reason.",
  denied: "The OpenID provider refused the sign-in.",
  invalid: "The answer of the OpenID provider is not valid; the log of the gateway has the reason.",
  over: "This sign-in took too long, or began in another browser. Sign in again.",
  no_role: "This account has no role here. An administrator gives roles in admin.auth.oidc.",
  address: "This address may not use the admin API (admin.auth.ip_whitelist).",
};

interface ProviderSignInProps {
  base: string;
  provider: string | undefined;
  why: string | undefined;
}

/** A link: the browser leaves for the provider, and comes back to this page. */
function ProviderSignIn({ base, provider, why }: ProviderSignInProps) {
  const failure = new URLSearchParams(location.search).get("sign_in");
  const failed = failure !== null && Object.hasOwn(FAILURES, failure) ? FAILURES[failure as SignInFailure] : undefined;
  const to = `/dashboard${location.hash}`;
  const page = to.length <= LONGEST_PAGE ? to : "/dashboard";
  const address = new URL(`admin/oidc/sign-in?to=${encodeURIComponent(page)}`, base);
  return (
    <div class="sign-in card">
      <h1 tabIndex={-1}>Sign in</h1>
      {failed !== undefined ? (
        <Notice tone="bad" isAlert>
          {failed}
        </Notice>
      ) : (
        why !== undefined && <Notice tone="warn">{why}</Notice>
      )}
      <a class="button main" href={address.href}>
        Sign in with {provider ?? "the OpenID provider"}
      </a>
    </div>
  );
}

function textOf(thrown: unknown, wrong: string): string {
  if (!(thrown instanceof ApiError)) return messageOf(thrown);
  if (thrown.status === 401) return wrong;
  if (thrown.status === 429) return `Too many wrong attempts: wait ${thrown.retryAfterSeconds ?? 10} s and try again.`;
  return thrown.message;
}
