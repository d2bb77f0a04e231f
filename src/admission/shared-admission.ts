// One queue for several gateways on one Redis server: one of them owns it, the others ask it. A gateway that reaches no server has
// a queue of its own, and brings what it has to the common one later.

import type { Logger } from "../logging/logger.ts";
import type { Redis } from "../redis/redis.ts";
import { type Admission, laterBy } from "./admission.ts";
import { type Envelope, readEnvelope } from "./envelope.ts";
import { createInboxReader } from "./inbox-reader.ts";
import { createOutbox, type Outbox } from "./outbox.ts";
import { OwnerGate } from "./owner-gate.ts";
import type { AdmissionQueue } from "./queue.ts";
import { createAdmissionDesk, createRemoteAdmission, type FromOwner, type ToOwner } from "./remote-admission.ts";
import { type Beat, beat, LEASE_MS, leave, look, post } from "./shared-lease.ts";

interface SharedAdmissionParts {
  /** The queue of this gateway, for the time in which it owns the common one or reaches no server. */
  queue: AdmissionQueue;
  /** Undefined: it is not open. */
  redis(): Redis | undefined;
  /** The same server, over connections on which reads may wait for so long. */
  inbox(): Redis | undefined;
  blockMs: number;
  /** Begins all keys. */
  prefix(): string;
  /** This gateway's queue has the part of one of so many gateways. */
  share(gateways: number): void;
  /** For the processes that ask this one. */
  roomChanged?: ((backend: string, isFull: boolean) => void) | undefined;
  now(): number;
  log: Pick<Logger, "info">;
}

type PeerDesk = ReturnType<typeof createAdmissionDesk>;

/** Another gateway, as the owner sees it. */
interface Peer {
  desk: PeerDesk;
  outbox: Outbox<FromOwner>;
  session: number;
  /** Number of the last envelope that came, and when. */
  heard: number;
  heardMs: number;
}

type QueueRole =
  /** It is not known yet whether there is a server. */
  | { kind: "undecided" }
  | { kind: "alone"; desk: PeerDesk }
  | {
      kind: "owner";
      desk: PeerDesk;
      generation: number;
      leaseUntilMs: number;
      peers: Map<string, Peer>;
      gate: OwnerGate;
      /** Until then others may come that have had queues of their own; undefined: all are there. */
      settlesUntilMs: number | undefined;
    }
  | {
      kind: "member";
      owner: string;
      generation: number;
      session: number;
      outbox: Outbox<ToOwner>;
      heard: number;
      heardMs: number;
    };

type Owner = Extract<QueueRole, { kind: "owner" }>;

/** A lost message is noticed after this time, a lost owner after LEASE_MS more. */
const BEAT_MS = 500;
/** The longest wait of a new owner for what the other gateways have. */
const GATE_MS = 1_500;
/** Gateways come back to a server that was away within this time: the longest pause between their tries, and a little. */
const SETTLE_MS = 12_000;
const MOST_MISSED_BEATS = SETTLE_MS / BEAT_MS;

export type SharedAdmission = ReturnType<typeof createSharedAdmission>;

export function createSharedAdmission({ queue, redis, prefix, share, now, log, ...parts }: SharedAdmissionParts) {
  const id = crypto.randomUUID();
  const remote = createRemoteAdmission(tell, now);
  const reader = createInboxReader({
    ...{ id, prefix, received, redis: parts.inbox, blockMs: parts.blockMs },
    hearingChanged: () => (reader.isHearing ? void keepTime() : goAlone()),
  });
  /** Backends that are full by this gateway's queue, and by the queue in use. */
  const full = new Set<string>();
  const shownFull = new Set<string>();
  let role: QueueRole = { kind: "undecided" };
  /** The gateways that the server has named, and how often it has named them no more. */
  const known = new Map<string, number>([[id, 0]]);
  /** What the server's clock is ahead of this one, at least and at most. */
  const aheadMs = { least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY };
  let lastSession = 0;
  let timer: Timer | undefined;
  let isBeating = false;

  const newDesk = (answer: (message: FromOwner) => void) =>
    createAdmissionDesk(
      () => queue,
      answer,
      (backend, ask) => queue.hold(backend, ask),
    );

  function tell(message: ToOwner): void {
    if (role.kind === "owner" && now() > role.leaseUntilMs) goAlone();
    if (role.kind === "member") role.outbox.push(message);
    else if (role.kind === "owner") role.gate.heard(role.desk, message);
    else if (role.kind === "alone") role.desk.heard(message);
    // Else it is told when this gateway has its role.
  }

  // Which backends are full.

  function showRoom(backend: string, isFull: boolean): void {
    remote.heard({ kind: "room", backend, isFull });
    if (isFull) shownFull.add(backend);
    else if (!shownFull.delete(backend)) return;
    parts.roomChanged?.(backend, isFull);
  }

  function showRoomsAgain(own: boolean): void {
    for (const backend of [...shownFull]) showRoom(backend, false);
    if (own) for (const backend of full) showRoom(backend, true);
  }

  // The roles.

  function goAlone(): void {
    if (role.kind === "alone") return;
    const before = role;
    const desk = before.kind === "owner" ? before.desk : newDesk(remote.heard);
    role = { kind: "alone", desk };
    share(known.size);
    if (before.kind === "owner") leaveOwnership(before);
    else begin(before, true);
  }

  /** The new role is in force: its owner hears of everything. */
  function begin(before: QueueRole, own: boolean): void {
    showRoomsAgain(own);
    remote.tellAgain();
    if (before.kind === "member") before.outbox.close();
    if (own || !("desk" in before)) return;
    if (before.kind === "owner") {
      before.gate.forget(before.desk);
      leaveOwnership(before);
    }
    before.desk.gone();
  }

  function leaveOwnership({ gate, peers }: Owner): void {
    for (const peer of peers.values()) end(gate, peer);
    gate.open();
  }

  function end(gate: OwnerGate, { desk, outbox }: Peer): void {
    gate.forget(desk);
    outbox.close();
    desk.gone();
  }

  function own({ generation, members }: Beat, sentMs: number): void {
    const leaseUntilMs = sentMs + LEASE_MS;
    if (role.kind === "owner") {
      // With another generation, where the server has lost its data: the others come again, and until then keep what they have.
      role.generation = generation;
      role.leaseUntilMs = leaseUntilMs;
      for (const [name, peer] of role.peers) if (!members.includes(name)) lose(role, name, peer);
      return;
    }
    log.info({ generation }, "this gateway keeps the queue of all gateways");
    const before = role;
    const wasAlone = before.kind === "alone";
    const desk = wasAlone ? before.desk : newDesk(remote.heard);
    // Where the server was away, every gateway has gone on with its part of the slots, and no request is held up.
    const awaited = wasAlone ? [] : members.filter((name) => name !== id);
    const gate = new OwnerGate(awaited, GATE_MS, now);
    const settlesUntilMs = wasAlone ? now() + SETTLE_MS : undefined;
    role = { kind: "owner", desk, generation, leaseUntilMs, peers: new Map(), gate, settlesUntilMs };
    if (wasAlone) return;
    share(1);
    begin(before, true);
  }

  /** The owner has the parts of those that are there, until all have come that were known. */
  function settle(owner: Owner): void {
    const { settlesUntilMs, peers } = owner;
    if (settlesUntilMs === undefined) return;
    const there = 1 + peers.size;
    const isOver = there >= known.size || now() >= settlesUntilMs;
    if (isOver) owner.settlesUntilMs = undefined;
    share(isOver ? 1 : known.size / there);
  }

  function learn(members: readonly string[]): void {
    for (const [name, missed] of known) {
      if (missed < MOST_MISSED_BEATS) known.set(name, missed + 1);
      else known.delete(name);
    }
    for (const name of members) known.set(name, 0);
  }

  function lose({ peers, gate }: Owner, name: string, peer: Peer): void {
    if (now() - peer.heardMs <= LEASE_MS) return;
    peers.delete(name);
    end(gate, peer);
    log.info({ gateway: name }, "a gateway is gone; its slots are free");
  }

  function join({ owner, generation }: Pick<Beat, "owner" | "generation">): void {
    known.set(owner, 0);
    const before = role;
    const session = ++lastSession;
    const outbox = createOutbox<ToOwner>((number, messages) => send(owner, { generation, session, number, messages }));
    role = { kind: "member", owner, generation, session, outbox, heard: -1, heardMs: now() };
    outbox.beat();
    begin(before, false);
  }

  /** Of one answer: the server has given it between the question and now. */
  function noteClock(leastMs: number, mostMs: number): void {
    aheadMs.least = Math.max(aheadMs.least, leastMs);
    aheadMs.most = Math.min(aheadMs.most, mostMs);
    if (aheadMs.least <= aheadMs.most) return;
    // One of the clocks was set.
    aheadMs.least = leastMs;
    aheadMs.most = mostMs;
  }

  /** Takes the lease where it is free, renews it, or learns who has it. */
  async function keepTime(): Promise<void> {
    if (isBeating || timer === undefined) return;
    isBeating = true;
    const sentMs = now();
    const reply = (await askTime()) ?? (await askTime());
    isBeating = false;
    if (timer === undefined) return;
    // Without an inbox that is read, this gateway can neither ask nor answer.
    if (reply === undefined || !reader.isHearing) {
      goAlone();
      return;
    }
    learn(reply.members);
    noteClock(reply.serverMs - now(), reply.serverMs + 1 - sentMs);
    if (reply.owner === id) own(reply, sentMs);
    else if (role.kind !== "member" || role.generation !== reply.generation || now() - role.heardMs > LEASE_MS) {
      join(reply);
    }
    if (role.kind === "member") role.outbox.beat();
    if (role.kind !== "owner") return;
    settle(role);
    for (const { outbox } of role.peers.values()) outbox.beat();
  }

  async function askTime(): Promise<Beat | undefined> {
    if (!reader.isHearing) {
      await redis()?.ask((client) => look(client, prefix(), id));
      return undefined;
    }
    const generation = role.kind === "owner" ? role.generation : undefined;
    return redis()?.ask((client) => beat(client, prefix(), id, generation));
  }

  // The envelopes.

  async function send(to: string, envelope: Omit<Envelope, "from" | "sentMs">): Promise<void> {
    const sentMs = now() + aheadMs.most;
    await redis()?.ask((client) => post(client, prefix(), to, JSON.stringify({ ...envelope, from: id, sentMs })));
  }

  function received(text: string): void {
    const envelope = readEnvelope(text);
    if (envelope === undefined || role.kind === "undecided" || role.kind === "alone") return;
    if (role.kind === "owner" && now() > role.leaseUntilMs) goAlone();
    else if (envelope.generation !== role.generation) return;
    else if (role.kind === "owner") heardByOwner(role, envelope);
    else heardByMember(role, envelope);
  }

  function heardByMember(member: Extract<QueueRole, { kind: "member" }>, envelope: Envelope): void {
    const { from, session, number, messages, again } = envelope;
    if (from !== member.owner || session !== member.session || (!again && number <= member.heard)) return;
    if (again || number > member.heard + 1) {
      join(member);
      return;
    }
    member.heard = number;
    member.heardMs = now();
    for (const message of messages as readonly FromOwner[]) {
      if (message.kind === "room") showRoom(message.backend, message.isFull);
      else remote.heard(message);
    }
  }

  function heardByOwner(owner: Owner, envelope: Envelope): void {
    const { from, session, number } = envelope;
    const peer = owner.peers.get(from);
    if (from === id || (peer && (session < peer.session || (session === peer.session && number <= peer.heard)))) return;
    // Not more than it was under way, or requests of other gateways would overtake those of this one.
    const passedMs = Math.max(0, now() + aheadMs.least - envelope.sentMs);
    const messages = (envelope.messages as readonly ToOwner[]).map((message) =>
      "ask" in message ? { ...message, ask: laterBy(message.ask, passedMs) } : message,
    );
    if (session === peer?.session && number === peer.heard + 1) {
      peer.heard = number;
      peer.heardMs = now();
      for (const message of messages) owner.gate.heard(peer.desk, message);
    } else if (number === 0 && session !== peer?.session) enter(owner, from, session, messages, peer);
    else void send(from, { generation: owner.generation, session, number: 0, again: true, messages: [] });
  }

  /** A gateway says what it has, for the first time or because something was lost. */
  function enter(owner: Owner, from: string, session: number, messages: readonly ToOwner[], before?: Peer): void {
    const outbox = createOutbox<FromOwner>((number, answers) =>
      send(from, { generation: owner.generation, session, number, messages: answers }),
    );
    const desk = newDesk(outbox.push);
    known.set(from, 0);
    owner.peers.set(from, { desk, outbox, session, heard: 0, heardMs: now() });
    for (const backend of full) outbox.push({ kind: "room", backend, isFull: true });
    // A slot that it still has is not free for a moment.
    for (const message of messages) if (message.kind === "holds") desk.heard(message);
    if (before !== undefined) end(owner.gate, before);
    for (const message of messages) if (message.kind !== "holds") owner.gate.heard(desk, message);
    owner.gate.toldBy(from);
    settle(owner);
  }

  return {
    admission: {
      takesLater: true,
      hasRoom: (backend, tokens) =>
        role.kind === "alone" || role.kind === "owner"
          ? queue.hasRoom(backend, tokens)
          : remote.admission.hasRoom(backend, tokens),
      take: remote.admission.take,
      wait: remote.admission.wait,
    } satisfies Admission as Admission,
    /** This gateway's queue has changed. */
    roomChanged(backend: string, isFull: boolean): void {
      if (isFull) full.add(backend);
      else full.delete(backend);
      if (role.kind !== "alone" && role.kind !== "owner") return;
      showRoom(backend, isFull);
      if (role.kind === "alone") return;
      for (const { outbox } of role.peers.values()) outbox.push({ kind: "room", backend, isFull });
    },
    /** The server is there again. */
    returned: () => void keepTime(),
    start(): void {
      if (timer !== undefined) return;
      timer = setInterval(keepTime, BEAT_MS);
      reader.start();
    },
    /** What this gateway has goes on here, and another one becomes the owner at once. */
    async stop(): Promise<void> {
      if (timer === undefined) return;
      clearInterval(timer);
      timer = undefined;
      reader.stop();
      goAlone();
      await redis()?.ask((client) => leave(client, prefix(), id));
    },
    /** No slot is given back any more. */
    end: remote.stop,
  };
}
