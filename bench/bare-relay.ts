// The least a relay on this runtime can do: what it costs is spent before any work of the gateway's own.
// Started by main.ts with the upstream's address and its own port.

const upstream = process.argv[2]!;

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.argv[3]),
  idleTimeout: 0,
  async fetch(request) {
    const body = await request.bytes();
    const headers = { "content-type": "application/json" };
    const answer = await fetch(upstream + new URL(request.url).pathname, {
      method: "POST",
      headers,
      body,
      signal: request.signal,
    });
    return new Response(answer.body, {
      status: answer.status,
      headers: { "content-type": answer.headers.get("content-type") ?? "application/json" },
    });
  },
});
