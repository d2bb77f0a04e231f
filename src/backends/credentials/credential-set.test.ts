// Which credentials are made, kept and ended as the configuration changes.

import { expect, test } from "bun:test";
import { documentSchema } from "../../config/sections/registry.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../logging/logger.ts";
import { BACKEND_KINDS } from "../kinds.ts";
import type { CredentialScheme } from "./credential.ts";
import { createCredentialSet } from "./credential-set.ts";

test("a credential lives as long as what it is made of stays, and its backend is enabled", async () => {
  const happened: string[] = [];
  const scheme: CredentialScheme<string> = {
    optionsOf: ({ headers }) => headers.user,
    make: (user, { backend }) => {
      happened.push(`make ${user} for ${backend}`);
      return { authorize: () => ({ user }), stop: () => void happened.push(`stop ${user}`) };
    },
  };
  const set = createCredentialSet(
    { env: {}, resolve: (path) => path, clock: systemClock, log: silentLogger() },
    () => ({ ...BACKEND_KINDS.generic, credential: scheme }),
  );
  const follow = (...backends: object[]) =>
    set.follow(
      documentSchema.parse({ backends: backends.map((one) => ({ url: "http://127.0.0.1:1", ...one })) }).backends,
    );

  follow({ name: "a", headers: { user: "u1" } }, { name: "plain" });
  expect(happened.splice(0)).toEqual(["make u1 for a"]);
  expect(await set.of({ name: "a" }).authorize({ method: "GET", url: "", headers: {} })).toEqual({ user: "u1" });

  follow({ name: "a", weight: 3, headers: { user: "u1" } });
  expect(happened.splice(0)).toEqual([]);
  follow({ name: "a", headers: { user: "u2" } }, { name: "b", headers: { user: "u3" } });
  expect(happened.splice(0)).toEqual(["make u2 for a", "make u3 for b", "stop u1"]);
  follow({ name: "a", enabled: false, headers: { user: "u2" } }, { name: "b", headers: { user: "u3" } });
  expect(happened.splice(0)).toEqual(["stop u2"]);
  await expect(
    (async () => await set.of({ name: "a" }).authorize({ method: "GET", url: "", headers: {} }))(),
  ).rejects.toThrow("not in use");
  set.stop();
  expect(happened).toEqual(["stop u3"]);
});
