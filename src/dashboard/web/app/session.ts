// Who is signed in, in every tab of the browser; else what the gateway wants for a sign-in.

import { batch, type ReadonlySignal, signal } from "@preact/signals";
import type { SignedIn } from "../../../admin/session.ts";
import type { CurlRequest } from "../curl.ts";
import { isDenied } from "../may.ts";
import { type Api, ApiError, messageOf } from "./api.ts";

interface WantedSignIn {
  /** As admin.auth.method names it. */
  method: string;
  /** The host of the OpenID provider, with method oidc. */
  provider: string | undefined;
  /** Why it is wanted again. */
  why: string | undefined;
}

interface BrowserSessionParts {
  api: Api;
  entered(): void;
  /** It was ended here. */
  left(): void;
  /** It is over, for whatever reason. */
  ended(): void;
  /** The sign-out did not arrive. */
  stayed(why: string): void;
}

/** A gateway that cannot say who is signed in is asked again after so long. */
const RETRY_MS = 3_000;

/** Another tab has signed in or out. */
type Word = "signed-in" | "signed-out";

export type BrowserSession = ReturnType<typeof createSession>;

/** Long because these functions share one sign-in. */
export function createSession({ api, entered, left, ended, stayed }: BrowserSessionParts) {
  const who = signal<SignedIn>();
  const wanted = signal<WantedSignIn>();
  const failure = signal<string>();
  let retry: ReturnType<typeof setTimeout> | undefined;
  const tabs = new BroadcastChannel("signalbox");
  const tell = (word: Word) => tabs.postMessage(word);

  /** Asks whether there is a sign-in; none is needed where the gateway wants none. */
  async function begin(): Promise<void> {
    clearTimeout(retry);
    try {
      enter(await api.get<SignedIn>("admin/session"));
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || thrown.status === 401) return;
      failure.value = thrown.message;
      retry = setTimeout(() => void begin(), RETRY_MS);
    }
  }

  function enter(signedIn: SignedIn): void {
    batch(() => {
      who.value = signedIn;
      wanted.value = undefined;
      failure.value = undefined;
    });
    entered();
  }

  tabs.onmessage = ({ data }: MessageEvent<Word>) => {
    const isNews = data === "signed-in" ? who.peek() === undefined : who.peek() !== undefined;
    if (isNews) void begin();
  };

  return {
    who: who as ReadonlySignal<SignedIn | undefined>,
    wanted: wanted as ReadonlySignal<WantedSignIn | undefined>,
    /** Why it is not known who is signed in. */
    failure: failure as ReadonlySignal<string | undefined>,
    begin,
    /** False for a request that the role of the person may not send. */
    may: (request: Pick<CurlRequest, "method" | "path">): boolean =>
      who.value !== undefined && !isDenied(request, who.value.needs_higher_role),

    async signIn(values: Readonly<Record<string, string>>): Promise<void> {
      const signedIn = await api.ask<SignedIn>({ method: "POST", path: "admin/session", body: values });
      tell("signed-in");
      enter(signedIn);
    },

    /** The gateway has answered that there is no sign-in. */
    lost(error: ApiError): void {
      const method = String(error.details.method ?? "");
      const { provider: host } = error.details;
      const provider = typeof host === "string" ? host : undefined;
      const why = who.peek() === undefined ? undefined : "This sign-in is over. Sign in again to go on here.";
      batch(() => {
        who.value = undefined;
        failure.value = undefined;
        // A wrong password is shown as what it is, not as a sign-in that is over.
        if (wanted.peek()?.method !== method || why !== undefined) wanted.value = { method, provider, why };
        ended();
      });
    },

    async signOut(): Promise<void> {
      try {
        await api.ask({ method: "DELETE", path: "admin/session" });
      } catch (thrown) {
        if (!(thrown instanceof ApiError) || thrown.status !== 401) {
          stayed(messageOf(thrown));
          return;
        }
      }
      tell("signed-out");
      batch(() => {
        who.value = undefined;
        ended();
        left();
      });
      await begin();
    },
  };
}
