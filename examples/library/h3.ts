// The gateway behind h3.
import { createApp, createRouter, defineEventHandler, fromWebHandler, toWebHandler } from "h3";
import { createGateway } from "signalbox";

const gateway = await createGateway({
  config: { backends: [{ name: "engine", type: "vllm", url: process.env.ENGINE_URL ?? "http://127.0.0.1:8000" }] },
});
const router = createRouter();
router.get("/about", defineEventHandler(() => "ours"));
router.use("/v1/**", fromWebHandler(gateway.handler));
const app = createApp();
app.use(router);

const answer = toWebHandler(app);
const server = Bun.serve({
  port: Number(process.env.PORT ?? 8080),
  hostname: "127.0.0.1",
  idleTimeout: 0,
  fetch: (request) => answer(request),
});
console.log(`listening on ${server.url}`);
