// Section server: where Signalbox listens and how it stops.

import { z } from "zod";
import { addressRange } from "../address-range.ts";
import { positiveDuration } from "../fields.ts";
import { defineSection } from "../section.ts";

const ADDRESS = /^(unix:.+|\[[0-9a-fA-F:.]+\]:\d{1,5}|[^\s:[\]/]+:\d{1,5})$/;

const address = z
  .string()
  .regex(ADDRESS, 'expected "host:port", "[v6]:port" or "unix:/path"')
  .refine((text) => text.startsWith("unix:") || Number(text.slice(text.lastIndexOf(":") + 1)) <= 65_535, {
    message: "the port must be between 0 and 65535",
  });

export const serverSection = defineSection({
  name: "server",
  description: "Listening addresses and the shutdown deadline.",
  schema: z.strictObject({
    bind_address: z
      .union([address, z.array(address).min(1)], {
        error: 'expected "host:port", "[v6]:port" or "unix:/path", or a list of these',
      })
      .default("127.0.0.1:8080")
      .describe('"host:port", "[v6]:port" or "unix:/path", or a list of these. Port 0 takes a free one.'),
    trusted_proxies: z
      .array(z.union([z.literal("unix:"), addressRange()], { error: 'expected an address, a CIDR range, or "unix:"' }))
      .default([])
      .describe(
        'Proxies whose X-Forwarded-For is believed: addresses, CIDR ranges, "unix:" for peers on a unix socket.',
      ),
    shutdown_timeout: positiveDuration()
      .prefault("30s")
      .describe("How long running requests may finish after SIGTERM or SIGINT."),
  }),
});
