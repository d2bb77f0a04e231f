// The least a relay over fetch can do: what it costs is spent before any work of the gateway's own.

export function relayByFetch(port: number, upstreamPort: number): void {
  const upstream = `http://127.0.0.1:${upstreamPort}`;
  Bun.serve({
    hostname: "127.0.0.1",
    port,
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
}
