// A real Redis server, from the package of the distribution: on a port or a unix socket, with or without a password or TLS;
// and a door in front of it, through which its answers come late, changed or not at all.

import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programPath } from "../../scripts/debian-packages.ts";
import { freePort } from "./free-port.ts";
import { waitFor } from "./wait-for.ts";

export interface RedisServerOptions {
  password?: string;
  /** Listens there instead of on a port. */
  socket?: boolean;
  tls?: { certificate: string; key: string; authority: string };
  /** One node, which has all slots. */
  cluster?: boolean;
  /** It has its data after a kill. */
  keepsData?: boolean;
}

export type RedisServer = Awaited<ReturnType<typeof startRedisServer>>;

export async function startRedisServer(options: RedisServerOptions = {}) {
  const { password, socket = false, tls, cluster = false, keepsData = false } = options;
  const folder = mkdtempSync(join(tmpdir(), "redis-"));
  chmodSync(folder, 0o700);
  const socketPath = join(folder, "redis.sock");
  const port = socket ? 0 : await freePort();
  const appendOnly = keepsData ? ["yes", "--appendfsync", "always"] : ["no"];
  const given = ["--bind", "127.0.0.1", "--save", "", "--appendonly", ...appendOnly, "--dir", folder];
  given.push(...(tls ? ["--port", "0", "--tls-port", String(port)] : ["--port", String(port)]));
  if (tls) {
    given.push("--tls-cert-file", tls.certificate, "--tls-key-file", tls.key, "--tls-ca-cert-file", tls.authority);
    given.push("--tls-auth-clients", "no");
  }
  if (socket) given.push("--unixsocket", socketPath);
  if (cluster) given.push("--cluster-enabled", "yes", "--cluster-port", String(await freePort()));
  if (password !== undefined) given.push("--requirepass", password);
  const userInfo = password === undefined ? "" : `:${password}@`;
  const url = socket
    ? `redis+unix://${userInfo}${socketPath}`
    : `${tls ? "rediss" : "redis"}://${userInfo}localhost:${port}`;
  let child: Bun.Subprocess | undefined;

  async function start(): Promise<void> {
    child = Bun.spawn([programPath("redis-server"), ...given], { stdout: "ignore", stderr: "inherit" });
    await waitFor("Redis listens", () => isListening(socket ? socketPath : port));
  }

  async function kill(): Promise<void> {
    child?.kill("SIGCONT");
    child?.kill("SIGKILL");
    await child?.exited;
    child = undefined;
  }

  const killAtExit = () => child?.kill("SIGKILL");
  process.on("exit", killAtExit);
  await start();
  return {
    url,
    port,
    socketPath,
    /** One command of the test's own; only without TLS. */
    async send(...command: string[]): Promise<unknown> {
      const host = socket ? `redis+unix://${password === undefined ? "" : `:${password}@localhost`}${socketPath}` : url;
      const client = new Bun.RedisClient(host, { autoReconnect: false });
      try {
        return await client.send(command[0] as string, command.slice(1));
      } finally {
        client.close();
      }
    },
    start,
    kill,
    /** It accepts connections, and never answers. */
    pause: () => child?.kill("SIGSTOP"),
    resume: () => child?.kill("SIGCONT"),
    async stop(): Promise<void> {
      await kill();
      process.off("exit", killAtExit);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function isListening(place: string | number): Promise<boolean> {
  try {
    const socket = { data() {} };
    const connection = await (typeof place === "string"
      ? Bun.connect({ unix: place, socket })
      : Bun.connect({ hostname: "127.0.0.1", port: place, socket }));
    connection.end();
    return true;
  } catch {
    return false;
  }
}

/** What is done to the bytes that the server sends; undefined: they are held back for good. */
export type Distort = (bytes: Uint8Array) => Uint8Array | undefined | Promise<Uint8Array | undefined>;

/** A door to the server at a port. `distort` may be exchanged at any time. */
export function openRedisDoor(port: number) {
  const open = new Set<Bun.Socket<unknown>>();
  const door = {
    distort: ((bytes) => bytes) as Distort,
    /** Connections that were opened, all together. */
    connections: 0,
    url: "",
    /** Everyone who is connected is cut off. */
    cut(): void {
      for (const socket of open) socket.terminate();
    },
    stop(): void {
      door.cut();
      listener.stop(true);
    },
  };
  const listener = Bun.listen<{ server: Promise<Bun.Socket<unknown>> }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(client) {
        door.connections++;
        open.add(client as Bun.Socket<unknown>);
        let answers = Promise.resolve();
        const server = Bun.connect({
          hostname: "127.0.0.1",
          port,
          socket: {
            data(_server, chunk) {
              const bytes = new Uint8Array(chunk);
              answers = answers.then(async () => {
                const distorted = await door.distort(bytes);
                if (distorted !== undefined) client.write(distorted);
              });
            },
            close: () => void client.end(),
          },
        });
        server.catch(() => client.end());
        client.data = { server };
      },
      async data(client, chunk) {
        const bytes = new Uint8Array(chunk);
        await client.data.server.then((server) => server.write(bytes)).catch(() => {});
      },
      close(client) {
        open.delete(client as Bun.Socket<unknown>);
        void client.data?.server.then((server) => server.end()).catch(() => {});
      },
    },
  });
  door.url = `redis://127.0.0.1:${listener.port}`;
  return door;
}
