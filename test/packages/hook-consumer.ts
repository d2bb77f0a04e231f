// A hook as a project of its own would write it, with every type of `signalbox/hooks`; installed.test.ts checks it
// against the packed tarball.

import {
  type AnswerHookEvent,
  type AnswerVerdict,
  type AttemptHookEvent,
  type AttemptVerdict,
  answer,
  type ChunkCuts,
  type ChunkHookEvent,
  type ChunkVerdict,
  type ContentPart,
  change,
  defineHook,
  type EndHookEvent,
  type GenerationRequest,
  type GenerationResult,
  type Hook,
  type HookAnswer,
  type HookInfo,
  type JsonObject,
  type Message,
  pass,
  type RequestHookEvent,
  type RequestVerdict,
  refuse,
  repair,
  type TextPart,
  type Tool,
  type ToolCallPart,
  type ToolResultPart,
  type Usage,
} from "signalbox/hooks";

interface Options {
  most: number;
}

const cuts: ChunkCuts = { by: "window", hold: 64, parts: ["text", "tool-call"] };

const nameOf = ({ name }: Tool | ToolCallPart): string => (typeof name === "string" ? name : "");
const textsOf = (parts: readonly ContentPart[]): string[] =>
  parts.flatMap((part) => (part.type === "text" ? [(part satisfies TextPart).text] : []));
const resultsOf = ({ parts }: Message): ToolResultPart[] => parts.filter((part) => part.type === "tool-result");
const tokensOf = (usage: Usage | undefined): number => usage?.output.total ?? 0;

async function request(event: RequestHookEvent<Options>): Promise<RequestVerdict> {
  const { options, info, ask } = event;
  const read: GenerationRequest | undefined = event.request;
  if (read === undefined) return pass();
  if (read.model === "none") return refuse(400, "no_model", "Name a model.");
  if (read.messages.flatMap(resultsOf).length > options.most) return refuse(400, "too_many", "Too many results.");
  if (read.tools.map(nameOf).includes("none")) return answer({ text: "no" });
  const told: HookAnswer = await ask("moderations", {
    model: "m",
    input: textsOf(read.messages.flatMap(({ parts }) => parts)),
  });
  if (told.status !== 200) return change({ body: { ...event.body, user: (info satisfies HookInfo).key } });
  return change(
    { request: { ...read, maxOutputTokens: options.most } },
    { state: { seen: true }, note: { most: options.most } },
  );
}

const attempt = ({ body, backend }: AttemptHookEvent<Options>): AttemptVerdict =>
  change({ body: { ...body, user: backend } });

function answered({ result, round, state }: AnswerHookEvent<Options>): AnswerVerdict {
  const read: GenerationResult | undefined = result;
  if (read === undefined || state === undefined) return pass();
  if (tokensOf(read.usage) === 0 && round === 0) return repair("Say something.");
  return change({ result: { ...read, finish: { reason: "stop" } } });
}

const chunk = ({ text, isLast }: ChunkHookEvent<Options>): ChunkVerdict =>
  isLast ? pass() : change({ text: text.slice(1), rest: "" });

const hook: Hook<Options> = defineHook<Options>({
  options: ({ most }: JsonObject) => ({ most: Number(most ?? 3) }),
  chunks: cuts,
  request,
  attempt,
  answer: answered,
  chunk,
  end({ status, durationMs }: EndHookEvent<Options>) {
    if (status > 600 || durationMs < 0) throw new Error("no such request");
  },
});

export default hook;
