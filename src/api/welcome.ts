// The answer at the gateway's bare address, for a browser and for curl, and the icon of the page.

import { SERVICE_NAME, VERSION } from "../names.ts";
import { at, type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";

const DESCRIPTION = "A model routing gateway: one address in front of hosted model APIs and self-hosted engines.";

const LINKS = {
  models: "/v1/models",
  openapi: "/openapi.json",
  health: "/health",
  readiness: "/readyz",
  dashboard: "/dashboard",
} as const;

/** Base URLs for clients, below the gateway's address. */
const CLIENTS = {
  openai: "/v1",
  anthropic: "/anthropic",
} as const;

const WELCOME = { service: SERVICE_NAME, version: VERSION, description: DESCRIPTION, links: LINKS, base_urls: CLIENTS };

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#1d2733"/>' +
  '<circle cx="8" cy="4.5" r="2" fill="#e5484d"/><circle cx="8" cy="11.5" r="2" fill="#30a46c"/></svg>';

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Signalbox</title>
<link rel="icon" href="/favicon.ico">
<style>body { font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em }</style>
</head>
<body>
<h1>Signalbox ${VERSION}</h1>
<p>${DESCRIPTION}</p>
<p>Clients of OpenAI's API use this address with <code>${CLIENTS.openai}</code>, clients of Anthropic's API use it with
<code>${CLIENTS.anthropic}</code> or as it is.</p>
<ul>
${Object.entries(LINKS)
  .map(([name, path]) => `<li><a href="${path}">${path}</a>: ${name}</li>`)
  .join("\n")}
</ul>
</body>
</html>
`;

export function welcomeRoutes(): DescribedEndpoint[] {
  return [
    // Clients look whether there is something at their base URL.
    ...at(["/", "/anthropic"], {
      method: "GET",
      id: "getWelcome",
      tag: "Health",
      access: "open",
      summary: "What this is, and where to go on",
      description: "A page for browsers, JSON for all other clients, by Accept.",
      answers: [{ ...jsonAnswer("Welcome", "Name, version and links."), types: ["text/html"] }],
      errors: [],
      handle({ request, headers }) {
        const shared = { ...headers, Vary: headers.Vary === undefined ? "Accept" : `Accept, ${headers.Vary}` };
        if (!prefersHtml(request.headers.get("accept") ?? "")) return Response.json(WELCOME, { headers: shared });
        return new Response(PAGE, {
          headers: {
            ...shared,
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'",
          },
        });
      },
    }),
    {
      method: "GET",
      path: "/favicon.ico",
      id: "getIcon",
      tag: "Health",
      access: "open",
      summary: "The icon of the page",
      answers: [{ status: 200, description: "The icon.", types: ["image/svg+xml"] }],
      errors: [],
      handle: ({ headers }) =>
        new Response(ICON, {
          headers: { ...headers, "Content-Type": "image/svg+xml", "Cache-Control": "public, max-age=86400" },
        }),
    },
  ];
}

/** Browsers name text/html; a client that takes anything is a program. */
export function prefersHtml(accept: string): boolean {
  const html = quality(accept, "text/html");
  return html > 0 && html >= quality(accept, "application/json");
}

/** The weight that the header gives this type itself (RFC 9110, section 12.5.1); 0 if it does not name the type. */
function quality(accept: string, type: string): number {
  for (const entry of accept.toLowerCase().split(",")) {
    const [name = "", ...parameters] = entry.split(";").map((part) => part.trim());
    if (name !== type) continue;
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    return weight === undefined ? 1 : Number(weight) || 0;
  }
  return 0;
}
