// The page of the dashboard before anything is in it, and what browsers must refuse on it.

import type { Assets } from "./asset.ts";

/** Nothing but files of this gateway: no script in the page, no style in the page, no other host, no frame around it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // Pictures that clients have sent are shown out of their recordings; such an address leads nowhere.
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  // A text that came from elsewhere cannot become markup or a script, whatever the page does with it.
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": CONTENT_SECURITY_POLICY,
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** Addresses are relative, so that a proxy may put the whole gateway below a path of its own. */
export function renderPage({ script, theme, style }: Assets): string {
  return pageOf({ root: "", folder: "dashboard/", script, theme, style });
}

/** The page for holders of keys, below the other one. */
export function renderOwnPage({ ownScript, theme, style }: Assets): string {
  return pageOf({ root: "../", folder: "", script: ownScript, theme, style });
}

interface PageParts extends Pick<Assets, "script" | "theme" | "style"> {
  /** Of the gateway, and of the files, as seen from the page. */
  root: string;
  folder: string;
}

function pageOf({ root, folder, script, theme, style }: PageParts): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Signalbox</title>
<link rel="icon" href="${root}favicon.ico" type="image/svg+xml">
<link rel="stylesheet" href="${folder}${style}">
<script src="${folder}${theme}"></script>
<script type="module" src="${folder}${script}"></script>
</head>
<body>
<noscript><p>This page needs JavaScript. The API says the same: GET /openapi.json.</p></noscript>
</body>
</html>
`;
}

/** For people whom the gateway does not let in; the text is its own. */
export function renderRefusal(message: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Signalbox</title>
</head>
<body>
<main>
<h1>The dashboard is closed from here</h1>
<p>${Bun.escapeHTML(message)}</p>
<p>Its operator can let people sign in: the setting <code>admin.auth</code>.</p>
</main>
</body>
</html>
`;
}
