// /admin/session: signing in with a browser, who one is, and signing out.

import {
  component,
  described,
  flag,
  namedShape,
  oneOfTexts,
  orNull,
  schemasOf,
  strictRequest,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import type { Administrator, Call, Guest } from "../server/endpoint.ts";
import { adminGroup, answer, toTimestamp } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";

/** The caller is not authenticated yet. */
const MAX_BODY_BYTES = 16 * 1024;

const METHOD_NAMES = ["none", "bearer_token", "basic", "api_key"] as const;

const SignIn = component(
  "SignIn",
  strictRequest(
    {},
    {
      token: described(text, "For bearer_token, and for api_key beside its keys."),
      username: described(text, "For basic."),
      password: described(text, "For basic."),
      key: described(text, "For api_key: one with the scope admin."),
    },
  ),
);
export const SignedIn = namedShape("SignedIn", {
  method: oneOfTexts(...METHOD_NAMES),
  name: described(orNull(text), "As the history of changes names them."),
  elevated: described(flag, "Whether secrets may be shown to them."),
  via: described(
    oneOfTexts("session", "credentials", "address"),
    "By the cookie of a sign-in, by credentials in a header, or because they are on this machine.",
  ),
  expires_at: described(orNull(time), "When the sign-in ends, however much it is used."),
  idle_expires_at: described(orNull(time), "When it ends without another request."),
});
export type SignedIn = ValueOf<typeof SignedIn>;
const SignedOut = namedShape("SignedOut", { success: flag });

const SCHEMAS = schemasOf(SignIn, SignedIn, SignedOut);

const endpoint = adminGroup("Sign-in", SCHEMAS);

type Door = Pick<AdminParts, "clock" | "adminDoor" | "happenings">;

export function sessionRoutes(parts: Door): DescribedEndpoint[] {
  return [
    endpoint("POST /admin/session", {
      id: "signIn",
      summary: "Sign in with a browser",
      description:
        "Takes what admin.auth.method wants, in the body or in the usual header, and sets a cookie for the other paths of the admin API. A wrong one counts as a guess. Under method none nothing is needed, and no cookie set.",
      isForGuests: true,
      body: {
        schema: SignIn,
        optional: true,
        example: { token: "the-token" },
        maxBytes: MAX_BODY_BYTES,
      },
      answers: [jsonAnswer(SignedIn, "Signed in.")],
      async handle(call, read) {
        const given = await read();
        const { administrator, cookie } = (call.guest as Guest).signIn(given);
        const signedIn = answer(call, view(administrator, parts));
        if (cookie !== undefined) signedIn.headers.append("Set-Cookie", cookie);
        return signedIn;
      },
    }),
    endpoint("GET /admin/session", {
      id: "getSession",
      summary: "Who one is",
      answers: [jsonAnswer(SignedIn, "Signed in, or let in without that.")],
      handle: (call) => answer(call, view(administratorOf(call), parts)),
    }),
    endpoint("DELETE /admin/session", {
      id: "signOut",
      summary: "Sign out",
      answers: [jsonAnswer(SignedOut, "The sign-in of this browser is over, if there was one.")],
      handle(call) {
        const signedOut = answer(call, { success: true });
        signedOut.headers.append("Set-Cookie", parts.adminDoor.signOut(call.request));
        parts.happenings.accessChanged();
        return signedOut;
      },
    }),
  ];
}

function administratorOf({ administrator }: Call): Administrator {
  return administrator as Administrator;
}

function view({ method, name, elevated, session }: Administrator, { clock }: Pick<Door, "clock">) {
  const nowMs = clock.wallTime();
  return {
    method,
    name: name ?? null,
    elevated,
    via:
      session !== undefined
        ? ("session" as const)
        : method === "none"
          ? ("address" as const)
          : ("credentials" as const),
    expires_at: session === undefined ? null : toTimestamp(nowMs + session.endsInMs),
    idle_expires_at: session === undefined ? null : toTimestamp(nowMs + session.idleEndsInMs),
  };
}
