// The gateway on a port of your own, beside your own paths. The server tells the gateway the addresses of clients.
import { createGateway } from "signalbox";

const gateway = await createGateway({
  config: { backends: [{ name: "engine", type: "vllm", url: process.env.ENGINE_URL ?? "http://127.0.0.1:8000" }] },
});
const server = Bun.serve({
  port: Number(process.env.PORT ?? 8080),
  hostname: "127.0.0.1",
  idleTimeout: 0, // models may think for minutes
  routes: { "/about": new Response("ours") },
  fetch: gateway.handler,
});
console.log(`listening on ${server.url}`);
