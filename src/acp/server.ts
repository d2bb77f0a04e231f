// The agent's side of ACP: bytes in, lines out, and whatever happens between them.

import { inTime } from "../lib/abortable-delay.ts";
import { parseJson } from "../lib/json.ts";
import { parseInPieces } from "../lib/json-pieces.ts";
import { type Line, LineReader } from "../lib/line-reader.ts";
import { otherWork } from "../lib/other-work.ts";
import { RpcConnection } from "./connection.ts";
import { mcpMethods } from "./mcp-methods.ts";
import { createDispatch, type RpcMethod } from "./methods.ts";
import { MAX_LINE_BYTES } from "./outbox.ts";
import type { AcpParts, AcpServer } from "./parts.ts";
import { RPC, RpcError } from "./rpc-error.ts";
import { sessionMethods } from "./session-methods.ts";
import { Sessions } from "./sessions.ts";
import type { AcpWorkings } from "./workings.ts";

/** Longer lines are parsed in pieces, so that other sessions go on meanwhile. */
const MAX_AT_ONCE_BYTES = 256 * 1024;
const PIECE_BYTES = 64 * 1024;

/** How long what was asked before the end is waited for, and how long the client's reading of it. */
const LAST_ANSWERS_MS = 2_000;
const LAST_LINES_MS = 1_000;

/** @param workings - for tests */
export function createAcpServer(parts: AcpParts, workings: AcpWorkings = {}): AcpServer {
  const { log } = parts;
  const dispatch = createDispatch(() => methods);
  const connection = new RpcConnection({
    write: (line) => parts.write(line),
    handle: dispatch.handle,
    refusalOf: (error) => refusalOf(error, log),
  });
  const sessions = new Sessions(parts, workings);
  const bridge = mcpMethods({ parts, workings, connection, sessions });
  const { abilities } = dispatch;
  const methods: Readonly<Record<string, RpcMethod>> = {
    ...sessionMethods({ parts, workings, sessions, connection, abilities }),
    ...bridge.methods,
  };
  const reader = createMessageReader(connection);
  let stopping: Promise<void> | undefined;

  async function stop(): Promise<void> {
    reader.end();
    sessions.cancelAll();
    await inTime(connection.answered(), LAST_ANSWERS_MS);
    await Promise.all([
      sessions.stop(),
      bridge.close().catch((err: unknown) => log.error({ err }, "the MCP bridge could not be closed")),
    ]);
    await inTime(connection.outbox.drained(), LAST_LINES_MS);
    connection.close();
  }

  return {
    receive: (bytes) => (stopping === undefined ? reader.receive(bytes) : undefined),
    stop() {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** Bytes -> messages, in order. */
function createMessageReader(connection: RpcConnection) {
  const lines = new LineReader(MAX_LINE_BYTES);
  /** Something has to be waited for before the next bytes are looked at. */
  let busy: Promise<void> | undefined;

  function receive(bytes: Uint8Array): void | Promise<void> {
    if (busy === undefined) return follow(goOn(lines.read(bytes)));
    return follow(busy.then(() => goOn(lines.read(bytes))));
  }

  function follow(work: void | Promise<void>): void | Promise<void> {
    if (work === undefined) return undefined;
    const mine = work.finally(() => {
      if (busy === mine) busy = undefined;
    });
    busy = mine;
    return mine;
  }

  function goOn(found: Generator<Line, void>): void | Promise<void> {
    for (let next = found.next(); !next.done; next = found.next()) {
      const work = take(next.value);
      if (work !== undefined) return work.then(() => goOn(found));
      if (connection.outbox.isChoked) return connection.outbox.unchoked().then(() => goOn(found));
    }
    return undefined;
  }

  function take(line: Line): void | Promise<void> {
    if (line === "too-long") {
      const message = `A line may have ${MAX_LINE_BYTES} bytes (32 MiB) at most.`;
      connection.refuse(new RpcError(RPC.invalidRequest, message, { reason: "message_too_large" }));
      return undefined;
    }
    if (line.length > MAX_AT_ONCE_BYTES) return takeInPieces(line);
    const text = decode(line);
    const message = text === undefined ? undefined : parseJson(text);
    if (message === undefined) connection.refuse(notJson());
    else connection.receive(message, () => text ?? "");
    return undefined;
  }

  async function takeInPieces(line: Uint8Array): Promise<void> {
    let message: unknown;
    try {
      message = await parseInPieces(line, { pieceBytes: PIECE_BYTES, pause: otherWork });
    } catch {
      connection.refuse(notJson());
      return;
    }
    connection.receive(message, () => decode(line) ?? "");
  }

  return {
    receive,
    /** The last line may have no end; half of one is nothing. */
    end() {
      const text = decode(lines.end() ?? new Uint8Array(0));
      const message = text ? parseJson(text) : undefined;
      if (message !== undefined) connection.receive(message, () => text ?? "");
    },
  };
}

/** Undefined for what is no UTF-8. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function notJson(): RpcError {
  return new RpcError(RPC.parse, "The line is no JSON in UTF-8.", { reason: "parse_error" });
}

function refusalOf(error: unknown, log: AcpParts["log"]): RpcError {
  if (error instanceof RpcError) return error;
  log.error({ err: error }, "an ACP request has failed");
  return new RpcError(RPC.internal, "Something went wrong; the log says what.", { reason: "internal_error" }, error);
}
