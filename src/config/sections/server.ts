// Section server: where Signalbox listens and how it stops.

import { z } from "zod";
import { addressRange } from "../values/address-range.ts";
import { positiveDuration, text, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

const ADDRESS = /^(unix:.+|\[[0-9a-fA-F:.]+\]:\d{1,5}|[^\s:[\]/]+:\d{1,5})$/;

const address = z
  .string()
  .regex(ADDRESS, 'expected "host:port", "[v6]:port" or "unix:/path"')
  .refine((text) => text.startsWith("unix:") || Number(text.slice(text.lastIndexOf(":") + 1)) <= 65_535, {
    message: "the port must be between 0 and 65535",
  });

const hostPattern = z.string().regex(/^(\*|(\*\.)?[A-Za-z0-9_][A-Za-z0-9._-]*|[0-9a-fA-F:.]+)$/, {
  message: 'expected a host name or an address without port, "*.example.com", or "*" for any',
});

/** The last part of a name is no number: what ends with one is an address, in whatever spelling. */
const linkHost = z.union(
  [addressRange(), z.string().regex(/^(\*\.)?([A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]*[A-Za-z_-][A-Za-z0-9_-]*$/)],
  { error: 'expected a host name without port, "*.example.com", an address or a CIDR range' },
);

const originPattern = z.string().regex(/^(\*|[a-z][a-z0-9+.-]*:\/\/(\*\.)?[^\s/*?#@]+)$/i, {
  message:
    'expected an origin without path, such as "https://app.example.com" or "https://*.example.com", or "*" for any',
});

export const serverSection = defineSection({
  reload: "requires_restart",
  restartFields: ["bind_address", "unix_socket_mode", "workers", "upstream_client", "connection_pool_size", "data_dir"],
  fileOnlyFields: ["data_dir"],
  serverFields: ["unix_socket_mode", "workers", "worker_memory_limit"],
  filePaths: { bind_address: { use: "socket" }, "bind_address.*": { use: "socket" } },
  description: "Listening addresses, the folder for what is written, and the shutdown deadline.",
  schema: z.strictObject({
    bind_address: z
      .union([address, z.array(address).min(1)], {
        error: 'expected "host:port", "[v6]:port" or "unix:/path", or a list of these',
      })
      .default("127.0.0.1:8080")
      .describe('"host:port", "[v6]:port" or "unix:/path", or a list of these. Port 0 takes a free one.'),
    unix_socket_mode: z
      .string({ error: 'expected octal digits in quotes, such as "0660"' })
      .regex(/^0?[0-7]{3}$/, 'expected octal digits, such as "0660"')
      .default("0660")
      .describe("Permissions of unix sockets: who may write to the file may connect."),
    workers: whole(0, 256).default(1).describe("Processes that answer on one port, 0 = one per core; on Linux."),
    worker_memory_limit: whole(64 * 1024 * 1024)
      .optional()
      .describe(
        "Bytes of memory above which a worker is replaced, once the new one listens. Without it there is no limit.",
      ),
    upstream_client: z
      .enum(["sockets", "fetch"])
      .default("sockets")
      .describe(
        "What speaks HTTP to backends: sockets, Signalbox's own client, or fetch, the runtime's, which is always used " +
          "behind a forward proxy.",
      ),
    connection_pool_size: whole(1, 10_000)
      .default(100)
      .describe("Idle connections that are kept open to each backend, at most; of upstream_client sockets."),
    data_dir: text()
      .default("./data")
      .describe("Folder of everything that is written; SIGNALBOX_DATA_DIR wins over it."),
    trusted_proxies: z
      .array(z.union([z.literal("unix:"), addressRange()], { error: 'expected an address, a CIDR range, or "unix:"' }))
      .default([])
      .describe(
        'Proxies whose X-Forwarded-For is believed: addresses, CIDR ranges, "unix:" for peers on a unix socket.',
      ),
    allowed_hosts: z
      .array(hostPattern)
      .default([])
      .describe(
        "Names in the Host header that requests may carry besides local ones and those of bind_address. Empty: any, but " +
          "only those while all addresses are loopback and API keys are not required.",
      ),
    allowed_link_hosts: z
      .array(linkHost)
      .default([])
      .describe(
        "Hosts that links in requests may lead to though they are not public, such as an image server of the engines: " +
          "names, addresses and CIDR ranges.",
      ),
    cors: z
      .strictObject({
        allowed_origins: z
          .array(originPattern)
          .default([])
          .describe(
            "Origins whose web pages may use the gateway, besides local ones where it is reached as localhost.",
          ),
      })
      .prefault({})
      .describe("Web pages from other origins (CORS)."),
    max_buffered_bodies: whole(1024 * 1024)
      .default(512 * 1024 * 1024)
      .describe("Bytes that the bodies of all requests may take together in memory; further ones get 503."),
    shutdown_timeout: positiveDuration()
      .prefault("30s")
      .describe("How long running requests may finish after SIGTERM or SIGINT."),
  }),
});
