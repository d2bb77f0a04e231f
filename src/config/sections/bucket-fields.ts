// Where a bucket of an S3-compatible server is, and with what it is opened.

import { z } from "zod";
import { text } from "./fields.ts";

/** @param user - the setting that wants the bucket */
export function bucketFields(user: string) {
  return {
    endpoint: z
      .string()
      .regex(/^https?:\/\/[^\s/@?#]+\/?$/, 'expected an address such as "https://s3.example.com", without a path')
      .optional()
      .describe("Address of the server; the bucket stands in the path. Default: that of AWS in the region."),
    bucket: text().optional().describe(`Required by ${user}.`),
    region: text().default("us-east-1"),
    access_key: text().optional().describe(`Required by ${user}.`),
    secret_key: text().optional().describe(`Required by ${user}.`),
  };
}

export function keyPrefix(usual: string) {
  return z
    .string()
    .regex(/^([A-Za-z0-9._-]+\/)*$/, 'expected names of letters, digits and . _ -, each with "/" behind it')
    .default(usual)
    .describe("What the names of all objects begin with.");
}
