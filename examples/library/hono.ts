// The gateway below a path of a hono application.
import { Hono } from "hono";
import { createGateway } from "signalbox";

const gateway = await createGateway({
  config: { backends: [{ name: "engine", type: "vllm", url: process.env.ENGINE_URL ?? "http://127.0.0.1:8000" }] },
});
const app = new Hono();
app.get("/about", (context) => context.text("ours"));
app.mount("/models", (request: Request) => gateway.handler(request));

const server = Bun.serve({ port: Number(process.env.PORT ?? 8080), hostname: "127.0.0.1", idleTimeout: 0, fetch: app.fetch });
console.log(`listening on ${server.url}`);
