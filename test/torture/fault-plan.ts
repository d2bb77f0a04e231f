// What happens to one of very many requests: a fault or none, and what the server writes for it.

import { gzipSync } from "node:zlib";
import { type SeededRandom, seededRandom } from "../simulation/seeded-random.ts";
import type { ServerConnection, Step } from "./server-connection.ts";

type Fault = "none" | "nothing" | "half" | "garbage" | "stall";

/** What happens to a request, all of it drawn from the seed and its number. */
export interface FaultPlan {
  id: number;
  fault: Fault;
  framing: "length" | "chunked" | "close" | "gzip";
  body: Buffer;
  requestBytes: number;
  /** Pieces of the answer, and turns between them. */
  pieces: number;
  pauses: number;
  ending: "fin" | "reset";
  /** What the server does with the connection behind a good answer. */
  after: "keep" | "surplus" | "ends" | "ends at the next";
  /** Turns after which the caller leaves; undefined: never. */
  leavesAfter: number | undefined;
  /** Turns for which the reader pauses at each piece. */
  readerPauses: number;
}

/** Bytes that bodies are parts of. */
const NOISE = noise(2 ** 20);

function noise(length: number): Buffer {
  const random = seededRandom(2);
  return Buffer.from(Uint8Array.from({ length }, () => random.between(0, 255)));
}

export function planOf(seed: number, id: number): FaultPlan {
  const random = seededRandom(Math.imul(seed, 0x9e3779b1) + id);
  const fault = random.chance(0.6) ? "none" : random.pick(["nothing", "half", "garbage", "stall"] as const);
  const leaves = fault === "stall" || random.chance(0.05);
  return {
    id,
    fault,
    framing: random.chance(0.8) ? random.pick(["length", "chunked"]) : random.pick(["close", "gzip"]),
    body: bodyOf(random, id),
    requestBytes: random.chance(0.005) ? random.between(100_000, 2_000_000) : random.between(0, 500),
    pieces: random.chance(0.4) ? random.between(2, 5) : 1,
    pauses: random.chance(0.05) ? random.between(5, 40) : random.between(0, 2),
    ending: random.pick(["fin", "reset"]),
    after: random.chance(0.7) ? "keep" : random.pick(["surplus", "ends", "ends at the next"]),
    leavesAfter: leaves ? random.between(0, 12) : undefined,
    readerPauses: random.chance(0.05) ? random.between(1, 3) : 0,
  };
}

/** Begins with the number of its request, and has a checksum behind it. */
function bodyOf(random: SeededRandom, id: number): Buffer {
  const length = random.chance(0.003) ? random.between(100_000, 900_000) : random.pick([0, 20, 200, 2_000, 8_000]);
  const at = random.between(0, NOISE.length - length - 1);
  const content = NOISE.subarray(at, at + length);
  return Buffer.concat([Buffer.from(`${id} ${Bun.hash.crc32(content)} `), content]);
}

function framed({ framing, body, fault }: FaultPlan): Buffer {
  if (framing === "length")
    return Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`), body]);
  if (framing === "gzip") {
    const packed = gzipSync(body, { level: 1 });
    return Buffer.concat([
      Buffer.from(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`),
      packed,
    ]);
  }
  // Half of a body that ends with the connection is a whole one: its length is told where it is to break off.
  if (framing === "close" && fault === "none") return Buffer.concat([Buffer.from("HTTP/1.1 200 OK\r\n\r\n"), body]);
  const parts: Buffer[] = [Buffer.from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")];
  const size = Math.max(1, Math.ceil(body.length / 3));
  for (let at = 0; at < body.length; at += size) {
    const chunk = body.subarray(at, at + size);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"));
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}

function inPieces(bytes: Buffer, { pieces, pauses }: FaultPlan): Step[] {
  const size = Math.ceil(bytes.length / pieces);
  const steps: Step[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    if (at > 0) steps.push({ turns: pauses });
    steps.push(bytes.subarray(at, at + size));
  }
  return steps;
}

const SURPLUS = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsurplus");
/** What is written and read at once. */
const SMALL = 10_000;

export function stepsOf(plan: FaultPlan, connection: ServerConnection): Step[] {
  const { fault, ending, after, framing } = plan;
  if (fault === "nothing") return [{ turns: plan.pauses }, ending];
  if (fault === "stall") return [];
  if (fault === "garbage") return [NOISE.subarray(plan.id % 1_000, (plan.id % 1_000) + 50)];
  const bytes = framed(plan);
  if (fault === "half")
    return [...inPieces(bytes.subarray(0, 1 + (plan.id % (bytes.length - 1))), plan), { turns: 1 }, ending];
  const steps = inPieces(bytes, plan);
  if (framing === "close") return [...steps, "fin"];
  // In the piece that ends the answer: what comes later is an answer to the next request, as far as anybody can tell.
  if (after === "surplus" && bytes.length < SMALL) steps.push(Buffer.concat([steps.pop() as Buffer, SURPLUS]));
  if (after === "ends") return [...steps, "idle", { turns: plan.pauses }, ending];
  if (after === "ends at the next") connection.note = ending;
  return steps;
}

export function requestBody({ id, requestBytes }: FaultPlan): Buffer {
  const at = id % 1_000;
  return NOISE.subarray(at, at + Math.min(requestBytes, NOISE.length - 1_000));
}
