// One attempt to deliver a notice: the address is checked, the notice posted, and the answer judged without being trusted.

import type { NotificationTarget } from "../config/sections/notifications.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { unlessAborted } from "../lib/abortable-delay.ts";
import { readBounded } from "../lib/read-bounded.ts";
import { checkedAddresses, connectTo, type Resolve, systemResolver } from "../media/checked-connection.ts";
import { type OpenHosts, parseLink } from "../media/links.ts";
import { bodyOf, type Notice, signatureHeaders } from "./notice.ts";

export interface DeliveryOutcome {
  isDelivered: boolean;
  /** Undefined: the receiver has not answered. */
  status?: number;
  /** The beginning of the answer, without the secrets of the target. */
  answer?: string;
  /** Why it was not delivered; holds nothing of the URL but its host. */
  error?: string;
  mayRetry?: boolean;
  /** The receiver asks for this much time. */
  retryAfterMs?: number;
}

export type Deliver = (target: NotificationTarget, notice: Notice, ended: AbortSignal) => Promise<DeliveryOutcome>;

interface DeliverParts {
  wallTime(): number;
  timeoutMs?: number;
  resolve?: Resolve;
}

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 4_096;
const SHOWN_CHARACTERS = 200;
const MOST_ADDRESSES = 3;
const EVERY_HOST: OpenHosts = { allowAddress: () => true, allowName: () => true };
const PASSING: ReadonlySet<number> = new Set([408, 425, 429]);

export function createDeliver({ wallTime, timeoutMs = TIMEOUT_MS, resolve = systemResolver }: DeliverParts): Deliver {
  async function post(target: NotificationTarget, notice: Notice, signal: AbortSignal): Promise<DeliveryOutcome> {
    const url = parseLink(target.url, "url");
    const addresses = await checkedAddresses(url, "url", target.allow_private ? EVERY_HOST : {}, resolve);
    const body = bodyOf(notice, target.format);
    const headers = {
      ...target.headers,
      "Content-Type": "application/json",
      "Accept-Encoding": "identity",
      ...signatureHeaders(notice, body, wallTime(), target.secret),
    };
    for (const address of addresses.slice(0, MOST_ADDRESSES)) {
      const response = await connectTo(url, address, { method: "POST", headers, body, signal }).catch(() => undefined);
      if (response !== undefined) return await judge(response, target);
      signal.throwIfAborted();
    }
    return { isDelivered: false, error: `${url.host} could not be reached`, mayRetry: true };
  }

  return async (target, notice, ended) => {
    const abort = new AbortController();
    const stop = () => abort.abort();
    const timer = setTimeout(stop, timeoutMs);
    ended.addEventListener("abort", stop, { once: true });
    try {
      if (ended.aborted) stop();
      // A resolver does not follow the signal, and is not waited for either.
      return await unlessAborted(post(target, notice, abort.signal), abort.signal);
    } catch (error) {
      if (ended.aborted) return { isDelivered: false, error: "the gateway was stopped" };
      if (abort.signal.aborted) {
        return { isDelivered: false, error: `no answer within ${timeoutMs / 1000} s`, mayRetry: true };
      }
      if (!(error instanceof GatewayError))
        return { isDelivered: false, error: "the connection broke", mayRetry: true };
      const isOpenable = error.message.includes("private or reserved");
      const help = isOpenable ? " Set allow_private: true in the configuration file if it should receive events." : "";
      return { isDelivered: false, error: `${error.message}${help}`, mayRetry: !isOpenable };
    } finally {
      clearTimeout(timer);
      ended.removeEventListener("abort", stop);
      // Ends a connection that is still open.
      abort.abort();
    }
  };
}

async function judge(response: Response, target: NotificationTarget): Promise<DeliveryOutcome> {
  const { status } = response;
  const isDelivered = status >= 200 && status < 300;
  const bytes = await readBounded(response.body, MAX_ANSWER_BYTES).catch(() => undefined);
  const answer = shownAnswer(bytes, target);
  if (isDelivered) return { isDelivered, status, answer };
  const why = status >= 300 && status < 400 ? "which is not followed" : undefined;
  const error = `the receiver answered with HTTP ${status}${why === undefined ? "" : `, ${why}`}`;
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return {
    ...{ isDelivered, status, answer, error },
    mayRetry: status >= 500 || PASSING.has(status),
    ...(seconds > 0 && { retryAfterMs: seconds * 1000 }),
  };
}

/** A receiver may send back what it got. */
function shownAnswer(bytes: Uint8Array | undefined, { url, secret, headers = {} }: NotificationTarget): string {
  if (bytes === undefined) return "";
  const { pathname, search } = new URL(url);
  const place = pathname + search;
  const secrets = [url, ...(place === "/" ? [] : [place]), ...Object.values(headers), ...(secret ? [secret] : [])];
  let shown = new TextDecoder().decode(bytes);
  for (const each of secrets) if (each !== "") shown = shown.replaceAll(each, "********");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be shown
  return shown.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").slice(0, SHOWN_CHARACTERS);
}
