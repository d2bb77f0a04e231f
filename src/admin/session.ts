// /admin/session: signing in with a browser, who one is, and signing out.

import { ADMIN_AUTH_METHODS } from "../config/sections/admin.ts";
import { includesRole, ROLES } from "../config/values/roles.ts";
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
  texts,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import { type Administrator, type Call, type Guest, maySeeSecrets } from "../server/endpoint.ts";
import { adminGroup, answer, toTimestamp } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";

/** The caller is not authenticated yet. */
const MAX_BODY_BYTES = 16 * 1024;

const SignIn = component(
  "SignIn",
  strictRequest(
    {},
    {
      token: described(text, "For bearer_token, and for api_key and oidc beside what they want."),
      username: described(text, "For basic."),
      password: described(text, "For basic."),
      key: described(text, "For api_key: one with the scope admin."),
    },
  ),
);
export const SignedIn = namedShape("SignedIn", {
  method: oneOfTexts(...ADMIN_AUTH_METHODS),
  name: described(orNull(text), "As the history of changes names them."),
  role: oneOfTexts(...ROLES),
  needs_higher_role: described(texts, "Operations that the role may not do, such as PUT /admin/backends/{name}."),
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

type Door = Pick<AdminParts, "clock" | "adminDoor" | "happenings"> & {
  /** Every endpoint of the admin API. */
  all(): readonly DescribedEndpoint[];
};

export function sessionRoutes(parts: Door): DescribedEndpoint[] {
  return [
    endpoint("POST /admin/session", {
      id: "signIn",
      role: "guest",
      summary: "Sign in with a browser",
      description:
        "Takes what admin.auth.method wants, in the body or in the usual header, and sets a cookie for the other paths of the admin API. A wrong one counts as a guess. Under method none nothing is needed, and no cookie set.",
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
      role: "viewer",
      summary: "Who one is",
      answers: [jsonAnswer(SignedIn, "Signed in, or let in without that.")],
      handle: (call) => answer(call, view(administratorOf(call), parts)),
    }),
    endpoint("DELETE /admin/session", {
      id: "signOut",
      role: "viewer",
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

function view(administrator: Administrator, { clock, all }: Pick<Door, "clock" | "all">) {
  const { method, name, role, session } = administrator;
  const nowMs = clock.wallTime();
  return {
    method,
    name: name ?? null,
    role,
    needs_higher_role: all()
      .filter((endpoint) => endpoint.role !== undefined && !includesRole(role, endpoint.role))
      .map((endpoint) => `${endpoint.method} ${endpoint.path}`),
    elevated: maySeeSecrets(administrator),
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
