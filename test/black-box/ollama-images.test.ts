// Ollama reads pictures only as data: the gateway fetches what a chat request names by address, and only from the internet.

import { expect, test } from "bun:test";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

const withImage = (url: string) => ({
  model: "m",
  messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
});

test("an address in the own network is refused with its field; data goes on untouched", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    config: { backends: [{ name: "o", type: "ollama", url: backend.url, models: ["m"] }] },
  });
  const refused = await gateway.post("/v1/chat/completions", withImage(`${backend.url}/cat.png`));
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ error: { param: "messages[0].content[0].image_url.url" } });
  expect(backend.requests).toHaveLength(0);
  expect(backend.probes.filter(({ path }) => path.includes("cat"))).toHaveLength(0);

  const body = JSON.stringify(withImage("data:image/png;base64,iVBORw0KGgo="));
  expect((await gateway.post("/v1/chat/completions", body)).status).toBe(200);
  expect(backend.lastRequest.text).toBe(body);
});
