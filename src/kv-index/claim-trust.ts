// How far a backend's word about its cache is taken: what it claims draws no more than an equal share of the requests until
// answers confirm it, and nothing for a while once answers contradict it.

import type { Usage } from "../generation/usage.ts";

/** How far one backend's claims are believed. */
export interface ClaimTrust {
  /** How many requests may still be drawn by claims alone. */
  credit: number;
  /** Answers in a row that contradict what was claimed. */
  contradicted: number;
  /** By the clock of the index; the backend's word counts as nothing before. */
  distrustedUntil: number;
}

/** A backend's claim about a prompt, made before it was asked. */
export interface Claim {
  /** Blocks that it has claimed, from the beginning; at least one. */
  told: number;
  /** Blocks of the whole prompt. */
  blocks: number;
}

/** Requests that claims draw before the first of them is confirmed. */
const MAX_CREDIT = 8;
const MAX_CONTRADICTED = 3;
/** Of what was claimed, because engines evict between a claim and a request, and blocks are bytes and no tokens. */
const CONFIRMING_SHARE = 0.25;
/** More are not asked for: pictures are many tokens of the prompt and a few bytes of its blocks. */
const CONFIRMING_TOKENS_PER_BLOCK = 16;

export const newTrust = (): ClaimTrust => ({ credit: MAX_CREDIT, contradicted: 0, distrustedUntil: 0 });

export const mayDraw = ({ credit }: ClaimTrust): boolean => credit >= 1;

/** A request was chosen for, with so many candidates: each has a right to its share of them. */
export function passed(trust: ClaimTrust, candidates: number): void {
  trust.credit = Math.min(MAX_CREDIT, trust.credit + 1 / candidates);
}

/** A request goes to the backend because of what it claims alone. */
export function drew(trust: ClaimTrust): void {
  trust.credit--;
}

/** True if the tokens of an answer confirm a claim; undefined where they say nothing about it. */
export function confirms(usage: Usage | undefined, claim: Claim | undefined): boolean | undefined {
  const { cacheRead, total = 0 } = usage?.input ?? {};
  if (claim === undefined || total === 0 || cacheRead === undefined) return undefined;
  const { told, blocks } = claim;
  return cacheRead >= Math.min((total * told * CONFIRMING_SHARE) / blocks, told * CONFIRMING_TOKENS_PER_BLOCK);
}

/** An answer has confirmed or contradicted a claim; true where the backend is distrusted from now on. */
export function judge(trust: ClaimTrust, isConfirmed: boolean, nowSeconds: number, durationSeconds: number): boolean {
  if (nowSeconds < trust.distrustedUntil) return false;
  if (isConfirmed) {
    trust.contradicted = 0;
    trust.credit = Math.min(MAX_CREDIT, trust.credit + 1);
    return false;
  }
  if (++trust.contradicted < MAX_CONTRADICTED) return false;
  trust.contradicted = 0;
  trust.distrustedUntil = nowSeconds + durationSeconds;
  return true;
}
