// The gateway behind h3.
import { fromWebHandler, H3 } from "h3";
import { createGateway } from "signalbox";

const gateway = await createGateway({
  config: { backends: [{ name: "engine", type: "vllm", url: process.env.ENGINE_URL ?? "http://127.0.0.1:8000" }] },
});
const app = new H3();
app.get("/about", () => "ours");
app.all("/v1/**", fromWebHandler(gateway.handler));

const server = Bun.serve({ port: Number(process.env.PORT ?? 8080), hostname: "127.0.0.1", idleTimeout: 0, fetch: app.fetch });
console.log(`listening on ${server.url}`);
