// Asks a model in the words of no wire format, whatever its backend speaks, and reads the answer as it comes.
import { createGateway } from "signalbox";

const gateway = await createGateway({
  config: { backends: [{ name: "engine", type: "vllm", url: process.env.ENGINE_URL ?? "http://127.0.0.1:8000" }] },
});
const messages = [{ role: "user" as const, parts: [{ type: "text" as const, text: "Say hello." }] }];

for await (const event of gateway.generate({ model: "m", system: "Be brief.", messages })) {
  if (event.type === "delta") process.stdout.write(event.text);
  if (event.type === "failure") console.error(event.failure.message);
}

const { usage, finish } = await gateway.generate({ model: "m", messages }).result();
console.log(`\n${finish.reason}, ${usage?.output.total ?? "unknown"} tokens`);
await gateway.close();
