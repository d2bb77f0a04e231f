// An official SDK asks the gateway inside the same program: no port, no network between them.
import OpenAI from "openai";
import { createGateway } from "signalbox";

const gateway = await createGateway({
  config: { backends: [{ name: "engine", type: "vllm", url: process.env.ENGINE_URL ?? "http://127.0.0.1:8000" }] },
});
const openai = new OpenAI({ baseURL: "http://signalbox/v1", apiKey: "none", fetch: gateway.fetch });

const answer = await openai.chat.completions.create({ model: "m", messages: [{ role: "user", content: "Say hello." }] });
console.log(answer.choices[0]?.message.content);
await gateway.close();
