// Fetches a file from a URL that a client named, without becoming the client's way into the operator's network: every
// address is checked, and the address that was checked is the one that is connected to.

import { clientLeft, GatewayError } from "../errors/gateway-error.ts";
import { unlessAborted } from "../lib/abortable-delay.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { readBounded } from "../lib/read-bounded.ts";
import { checkedAddresses, connectTo, type Resolve, systemResolver } from "./checked-connection.ts";
import { type OpenHosts, parseLink, redirectTarget } from "./links.ts";
import {
  type AcceptedMedia,
  acceptedTypes,
  checkMedia,
  isPlainText,
  isUnknownType,
  largestSize,
  mediaTypeRule,
  normalizeMediaType,
  refused,
  sniffMediaType,
  tooLarge,
} from "./media-types.ts";

export interface ExternalFetchParts extends OpenHosts {
  deadlines: Deadlines;
  /** Time for the whole fetch, redirects included. */
  timeoutMs?: number;
  /** Addresses of a name; the system's resolver when left out. */
  resolve?: Resolve;
  now?: () => number;
  /** Certificates that are trusted instead of the system's. */
  ca?: string;
}

export interface ExternalFetchRequest {
  url: string;
  /** The field of the request that holds the URL; errors name it. */
  param: string;
  accepted?: AcceptedMedia;
  /** Called with every piece as it arrives; what it throws ends the fetch. */
  onBytes?: (bytes: number) => void;
  signal?: AbortSignal;
}

interface ExternalFile {
  /** Proven by the first bytes of the content. */
  mediaType: string;
  bytes: Uint8Array;
}

/** Throws GatewayError 400 that names the field; the message holds neither addresses nor more of the URL than its host. */
export type FetchExternal = (request: ExternalFetchRequest) => Promise<ExternalFile>;

const DEFAULT_TIMEOUT_MS = 15_000;
const MAX_REDIRECTS = 3;
/** Most addresses that are tried of one name. */
const MAX_ADDRESSES_TRIED = 3;
const REDIRECT_STATUS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** One fetch under way; the signal also ends it when its time is over. */
type Fetching = ExternalFetchRequest & { signal: AbortSignal };

export function createExternalFetch(options: ExternalFetchParts): FetchExternal {
  const { deadlines, timeoutMs = DEFAULT_TIMEOUT_MS, resolve = systemResolver } = options;
  const now = options.now ?? (() => performance.now());

  async function fetchFile(fetching: Fetching): Promise<ExternalFile> {
    let url = parseLink(fetching.url, fetching.param);
    for (let redirects = 0; ; redirects++) {
      const response = await openHop(url, fetching);
      if (!REDIRECT_STATUS.has(response.status)) return readFile(response, url, fetching);
      await response.body?.cancel().catch(() => undefined);
      if (redirects === MAX_REDIRECTS)
        throw refused(fetching.param, `more than ${MAX_REDIRECTS} redirects were answered.`);
      url = redirectTarget(response.headers.get("location"), url, fetching.param);
    }
  }

  /** The answer of one hop: name looked up once, all its addresses checked, one of them connected to. */
  async function openHop(url: URL, fetching: Fetching): Promise<Response> {
    const addresses = await checkedAddresses(url, fetching.param, options, resolve);
    for (const address of addresses.slice(0, MAX_ADDRESSES_TRIED)) {
      try {
        return await connectTo(url, address, {
          // Limits count transferred bytes, so the body must not grow by unpacking.
          headers: { Accept: "*/*", "Accept-Encoding": "identity" },
          signal: fetching.signal,
          ca: options.ca,
        });
      } catch {
        // The next address may answer.
      }
    }
    throw refused(fetching.param, `${url.host} could not be reached.`);
  }

  /** Within the time limit, and only as long as the client is there. */
  async function within(
    request: ExternalFetchRequest,
    work: (fetching: Fetching) => Promise<ExternalFile>,
  ): Promise<ExternalFile> {
    if (request.signal?.aborted) throw clientLeft();
    const abort = new AbortController();
    const leave = () => abort.abort();
    const deadline: Deadline = { deadlineMs: now() + timeoutMs, expire: leave };
    request.signal?.addEventListener("abort", leave, { once: true });
    deadlines.add(deadline);
    try {
      // A resolver and a server that do not follow the signal are not waited for either.
      return await unlessAborted(work({ ...request, signal: abort.signal }), abort.signal);
    } catch (error) {
      if (request.signal?.aborted) throw clientLeft();
      if (abort.signal.aborted) throw refused(request.param, "the file could not be fetched in time.");
      if (error instanceof GatewayError) throw error;
      throw refused(request.param, "the file could not be fetched.");
    } finally {
      deadlines.remove(deadline);
      request.signal?.removeEventListener("abort", leave);
      // Ends every connection that is still open.
      abort.abort();
    }
  }

  return (request) => within(request, fetchFile);
}

async function readFile(response: Response, url: URL, fetching: Fetching): Promise<ExternalFile> {
  const { param, accepted, onBytes } = fetching;
  if (response.status !== 200) throw refused(param, `${url.host} answered with HTTP ${response.status}.`);
  const encoding = response.headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") throw refused(param, `${url.host} answered in compressed form.`);
  const declared = normalizeMediaType(response.headers.get("content-type") ?? "");
  const rule = mediaTypeRule(declared, accepted);
  if (rule === undefined && !isUnknownType(declared)) {
    const types = acceptedTypes(accepted).join(", ");
    throw refused(param, `${url.host} answered with the media type ${JSON.stringify(declared)}; expected ${types}.`);
  }
  const limit = rule?.maxBytes ?? largestSize(accepted);
  const announced = Number(response.headers.get("content-length") ?? 0);
  const bytes = announced > limit ? undefined : await readBounded(response.body, limit, onBytes);
  if (bytes === undefined) throw refused(param, tooLarge(declared || "unknown", limit));
  const sniffed = sniffMediaType(bytes);
  const facts = { declared, sniffed, sizeBytes: bytes.length, isText: () => isPlainText(bytes) };
  return { mediaType: checkMedia(facts, param, accepted), bytes };
}
