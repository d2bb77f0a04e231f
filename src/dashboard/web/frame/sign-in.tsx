// Signing in, by what admin.auth.method wants. What is typed is sent once and kept nowhere; the browser keeps a cookie that
// scripts cannot read.

import { useSignal } from "@preact/signals";
import { ApiError, messageOf } from "../app/api.ts";
import { useApp } from "../app/context.ts";
import { Field } from "../parts/field.tsx";
import { Notice } from "../parts/notice.tsx";

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
  const { session } = useApp();
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

function textOf(thrown: unknown, wrong: string): string {
  if (!(thrown instanceof ApiError)) return messageOf(thrown);
  if (thrown.status === 401) return wrong;
  if (thrown.status === 429) return `Too many wrong attempts: wait ${thrown.retryAfterSeconds ?? 10} s and try again.`;
  return thrown.message;
}
