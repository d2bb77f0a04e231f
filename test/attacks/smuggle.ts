// Sends one smuggling form, and tells what came back.

import type { Gateway } from "../support/gateway.ts";
import { RawConnection } from "../support/raw-http.ts";
import { waitFor } from "../support/wait-for.ts";
import type { Form } from "./smuggling-forms.ts";

export interface Attacked {
  /** Of every answer that came on the connection. */
  statuses: number[];
  /** What the hidden request asks for; nobody else does. */
  hiddenPath: string;
  /** Stands in the body of the first request. */
  marker: string;
}

/** A server that waits for more of a request says nothing; longer than this nobody waits for it. */
const SILENCE_MS = 1_500;

export async function attack(port: number, form: Form, index: number): Promise<Attacked> {
  const marker = `form-${index}.`;
  const hiddenPath = `/admin/config/hidden-${index}`;
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: marker }] });
  const hidden = `GET ${hiddenPath} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
  const connection = await RawConnection.open(port);
  connection.write(Buffer.from(form.bytes({ body, hidden }), "latin1"));
  const statuses = () =>
    [...connection.received.toString("latin1").matchAll(/^HTTP\/1\.[01] (\d{3})/gm)].map(([, status]) =>
      Number(status),
    );
  await waitFor("an answer, the end, or silence", () => connection.isClosed || statuses().length > 0, {
    timeoutMs: SILENCE_MS,
    intervalMs: 20,
  }).catch(() => {});
  // What the gateway has in hand of this connection, it answers before the next one.
  await ordinary(port);
  const found = statuses();
  connection.abort();
  return { statuses: found, hiddenPath, marker };
}

/** A request of somebody else. */
async function ordinary(port: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/models`);
  if (response.status !== 200) throw new Error(`an ordinary request was answered with ${response.status}`);
  await response.text();
}

/** The access log is written up to here. */
export async function logBarrier(gateway: Gateway): Promise<void> {
  const path = `/barrier-${crypto.randomUUID()}`;
  await (await gateway.fetch(path)).text();
  await waitFor("the access log is written", () => gateway.printed.logEntries.some((entry) => entry.path === path));
}
