// Whom a backend is checked with: the text in force, and nobody rather than the system's authorities.

import { expect, test } from "bun:test";
import { settingsOf } from "../../test/support/serve-routes.ts";
import { toBackend } from "../backends/backend.ts";
import { createTlsOf } from "./backend-tls.ts";

const PEM = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n";

let files = new Map([["a.pem", "first"]]);
const tlsOf = createTlsOf(() => files);

function backendWith(tls?: object) {
  const { backends } = settingsOf({ backends: [{ name: "a", url: "https://10.0.0.1", ...(tls && { tls }) }] });
  return toBackend(backends[0] as (typeof backends)[number]);
}

test.each<[tls: object | undefined, answer: object | undefined]>([
  [undefined, undefined],
  [{}, { ca: undefined, serverName: undefined }],
  [{ server_name: "engine" }, { ca: undefined, serverName: "engine" }],
  [{ ca: PEM }, { ca: PEM, serverName: undefined }],
  [
    { ca: "a.pem", server_name: "engine" },
    { ca: "first", serverName: "engine" },
  ],
])("%j", (tls, answer) => {
  expect(tlsOf(backendWith(tls))).toEqual(answer as object);
});

test("the file as it is now; without it the answer is no certificate, but never the system's", () => {
  const backend = backendWith({ ca: "a.pem" });
  files = new Map([["a.pem", "second"]]);
  expect(tlsOf(backend)?.ca).toBe("second");
  files = new Map();
  expect(tlsOf(backend)?.ca).toBe("a.pem");
});
