// Checks the signature of a request as AWS does (Signature Version 4), with the secret of the one key that there is. It is
// written from AWS's document "Create a signed AWS API request", and shares nothing with the package that signs.

import { createHash, createHmac } from "node:crypto";
import type { ReceivedRequest } from "./server.ts";
import { Refused } from "./shape.ts";

export interface AwsKey {
  accessKeyId: string;
  secretAccessKey: string;
  /** Has to come along where it is set. */
  sessionToken?: string;
}

const FORM =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([a-z0-9-]+)\/([a-z0-9-]+)\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/;
/** How old a request may be. */
const TOLERANCE_MS = 15 * 60 * 1000;

const sha256 = (text: string) => createHash("sha256").update(text, "utf8").digest("hex");
const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text, "utf8").digest();

function refused(message: string, code = "InvalidSignatureException"): Refused {
  return new Refused("invalid", "authorization", message, 403, code);
}

/** Throws Refused 403 as AWS words it. */
export function checkSignature(request: ReceivedRequest, key: AwsKey, region: string): void {
  const { headers } = request;
  const { authorization = "" } = headers;
  if (authorization === "") throw refused("Missing Authentication Token", "MissingAuthenticationTokenException");
  const [, keyId, day = "", signedRegion = "", service = "", signedHeaders = "", signature] =
    FORM.exec(authorization) ?? [];
  if (keyId === undefined) throw refused("Authorization header is incomplete", "IncompleteSignatureException");
  if (keyId !== key.accessKeyId) {
    throw refused("The security token included in the request is invalid.", "UnrecognizedClientException");
  }
  if (headers["x-amz-security-token"] !== key.sessionToken) {
    throw refused("The security token included in the request is expired", "ExpiredTokenException");
  }
  if (service !== "bedrock" || signedRegion !== region) {
    throw refused(`Credential should be scoped to a valid region, not '${signedRegion}', and to the service bedrock.`);
  }
  const date = headers["x-amz-date"] ?? "";
  if (!date.startsWith(day) || Math.abs(timeOf(date) - Date.now()) > TOLERANCE_MS) {
    throw refused("Signature expired");
  }
  for (const name of ["host", "x-amz-date", ...(key.sessionToken === undefined ? [] : ["x-amz-security-token"])]) {
    if (!signedHeaders.split(";").includes(name)) throw refused(`'${name}' must be a signed header`);
  }
  if (expectedSignature(request, key, { day, date, region, signedHeaders }) !== signature) {
    throw refused(
      "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.",
    );
  }
}

interface Scope {
  day: string;
  date: string;
  region: string;
  signedHeaders: string;
}

function expectedSignature(request: ReceivedRequest, key: AwsKey, { day, date, region, signedHeaders }: Scope): string {
  const [path = "/", query = ""] = request.target.split("?");
  const canonical = [
    request.method,
    path.split("/").map(escaped).join("/"),
    query.split("&").filter(Boolean).sort().join("&"),
    ...signedHeaders.split(";").map((name) => `${name}:${(request.headers[name] ?? "").trim().replace(/\s+/g, " ")}`),
    "",
    signedHeaders,
    sha256(request.text),
  ].join("\n");
  const scope = `${day}/${region}/bedrock/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", date, scope, sha256(canonical)].join("\n");
  const derived = [region, "bedrock", "aws4_request"].reduce(hmac, hmac(`AWS4${key.secretAccessKey}`, day));
  return hmac(derived, toSign).toString("hex");
}

/** The path that is sent is escaped once; the one that is signed a second time. */
function escaped(segment: string): string {
  return encodeURIComponent(segment).replace(
    /[!'()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** "20261126T101500Z" */
function timeOf(date: string): number {
  return Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}
