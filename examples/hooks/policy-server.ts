// A hook behind a URL, in any language: checks the signature, and refuses what costs too much outside of office hours.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const secret = process.env.HOOK_SECRET ?? "";

function isSigned(headers: NodeJS.Dict<string | string[]>, body: string): boolean {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature } = headers;
  const isFresh = Math.abs(Date.now() / 1000 - Number(timestamp)) < 300;
  const wanted = `v1,${createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  const given = Buffer.from(String(signature));
  return isFresh && given.length === wanted.length && timingSafeEqual(given, Buffer.from(wanted));
}

function verdictOf({ event, body }: { event: string; body: { model?: string } }): object {
  const hour = Number(process.env.HOUR ?? new Date().getHours());
  const isExpensive = body.model?.includes("opus") === true;
  if (event !== "request" || !isExpensive || (hour >= 8 && hour < 18)) return { verdict: "pass" };
  return { verdict: "refuse", status: 403, code: "office_hours", message: "This model is for office hours." };
}

const server = createServer(async (request, response) => {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += piece;
  if (!isSigned(request.headers, text)) return response.writeHead(401).end();
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(verdictOf(JSON.parse(text))));
});
server.listen(Number(process.env.PORT ?? 8090), "127.0.0.1", () => console.log("listening", server.address()));
