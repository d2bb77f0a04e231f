// Has a small model judge whether a question is on topic, and gives an answer of its own where it is not.

import { answer, defineHook, pass } from "signalbox/hooks";

interface Options {
  topic: string;
  model: string;
}

interface ChatAnswer {
  choices?: { message?: { content?: string } }[];
}

export default defineHook<Options>({
  options({ topic, model }) {
    if (typeof topic !== "string" || typeof model !== "string") throw new Error("options: name a topic and a model");
    return { topic, model };
  },

  async request({ request, ask, options: { topic, model } }) {
    const last = request?.messages.at(-1)?.parts.find((part) => part.type === "text");
    if (last?.type !== "text") return pass();
    const question = `Is this about ${topic}? Answer with yes or no alone.\n\n${last.text}`;
    const { status, body } = await ask("chat", { model, messages: [{ role: "user", content: question }] });
    if (status !== 200) throw new Error(`the model ${model} answered with ${status}`);
    const said = (body as ChatAnswer).choices?.[0]?.message?.content ?? "";
    return said.trim().toLowerCase().startsWith("yes") ? pass() : answer({ text: `I can only help with ${topic}.` });
  },
});
