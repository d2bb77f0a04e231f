// A receiver of OTLP that takes everything and keeps nothing. Prints its port.

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    await request.arrayBuffer();
    return new Response(null, { headers: { "Content-Type": "application/x-protobuf" } });
  },
});
console.log(server.port);
process.stdin.on("end", () => process.exit(0)).resume();

export {};
