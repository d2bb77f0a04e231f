// The same request as a command line: whatever the dashboard does, a shell can do.

export interface CurlRequest {
  method: string;
  /** From the root of the gateway, such as "admin/health". */
  path: string;
  /** Sent as JSON. */
  body?: unknown;
}

/** @param needsAuth - whether the admin API wants credentials: the command takes them from $AUTH, as the documentation does */
export function curlOf({ method, path, body }: CurlRequest, base: string, needsAuth: boolean): string {
  const parts = ["curl"];
  if (needsAuth) parts.push('-H "$AUTH"');
  const impliesPost = method === "POST" && body !== undefined;
  if (method !== "GET" && !impliesPost) parts.push(`-X ${method}`);
  parts.push(quoted(new URL(path, base).href));
  if (body !== undefined) parts.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`);
  const line = parts.join(" ");
  return line.length <= 100 ? line : parts.join(" \\\n  ").replace("curl \\\n  ", "curl ");
}

/** For a POSIX shell: nothing in it means anything to it. */
function quoted(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
