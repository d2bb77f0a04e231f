// A real Chromium (Debian's package), driven by playwright-core, that notes whatever a page does and should not.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programPath } from "../../scripts/debian-packages.ts";
import { AXE, installedPackage, PLAYWRIGHT } from "../../scripts/npm-programs.ts";
import { waitFor } from "./wait-for.ts";

/** As far as it is used here; the package is not among the dependencies. */
export interface Page {
  goto(url: string): Promise<{ status(): number; headers(): Record<string, string> } | null>;
  reload(): Promise<unknown>;
  close(): Promise<void>;
  url(): string;
  title(): Promise<string>;
  content(): Promise<string>;
  on(event: string, listener: (about: never) => void): void;
  evaluate<Result>(script: string | ((argument: never) => Result), argument?: unknown): Promise<Awaited<Result>>;
  getByRole(role: string, options?: { name?: string | RegExp; exact?: boolean; pressed?: boolean }): Locator;
  getByLabel(label: string | RegExp, options?: { exact?: boolean }): Locator;
  getByText(text: string | RegExp, options?: { exact?: boolean }): Locator;
  locator(selector: string, options?: { hasText?: string | RegExp }): Locator;
  screenshot(options: { path?: string; fullPage?: boolean }): Promise<Buffer>;
  setViewportSize(size: { width: number; height: number }): Promise<void>;
  emulateMedia(options: { colorScheme?: "light" | "dark"; reducedMotion?: "reduce" }): Promise<void>;
  waitForEvent(event: string): Promise<never>;
  mouse: { move(x: number, y: number): Promise<void>; down(): Promise<void>; up(): Promise<void> };
  keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> };
  addInitScript(script: string): Promise<void>;
}

export interface Locator {
  click(): Promise<void>;
  fill(text: string): Promise<void>;
  press(key: string): Promise<void>;
  selectOption(value: string): Promise<unknown>;
  waitFor(options?: { state?: "visible" | "hidden" | "attached" | "detached"; timeout?: number }): Promise<void>;
  textContent(): Promise<string | null>;
  innerText(): Promise<string>;
  inputValue(): Promise<string>;
  allInnerTexts(): Promise<string[]>;
  getAttribute(name: string): Promise<string | null>;
  count(): Promise<number>;
  isVisible(): Promise<boolean>;
  isDisabled(): Promise<boolean>;
  first(): Locator;
  last(): Locator;
  nth(index: number): Locator;
  focus(): Promise<void>;
  hover(): Promise<void>;
  filter(options: { hasText?: string | RegExp }): Locator;
  locator(selector: string, options?: { hasText?: string | RegExp }): Locator;
  getByRole: Page["getByRole"];
  getByText: Page["getByText"];
}

export interface Context {
  /** The pages' own: their timers follow it. */
  clock: { install(): Promise<void>; fastForward(durationMs: number): Promise<void> };
  newPage(): Promise<Page>;
  close(): Promise<void>;
  cookies(): Promise<
    { name: string; value: string; path: string; httpOnly: boolean; secure: boolean; sameSite: string }[]
  >;
  clearCookies(): Promise<void>;
  setOffline(isOffline: boolean): Promise<void>;
}

interface Launched {
  newContext(options?: object): Promise<Context>;
  close(): Promise<void>;
}

/** A page, and what it should not have done. */
export interface WatchedPage {
  page: Page;
  /** Errors and warnings of its console, exceptions, violations of its policy, requests to other hosts. */
  offences: string[];
  /** Barriers that axe-core finds, in words; by all of its rules, or by some. */
  barriers(rules?: readonly string[]): Promise<string[]>;
}

export interface Browser {
  context(options?: object): Promise<Context>;
  open(context: Context, url: string): Promise<WatchedPage>;
  close(): Promise<void>;
}

const WAIT_MS = 20_000;

/**
 * Chromium keeps renderers ready, and pages of its own user interface, that no test sees: a quarter of its CPU time. The option
 * replaces the one of playwright, whose list stands first.
 */
const WITHOUT_FEATURES = [
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsUpgrades",
  "HttpsFirstBalancedModeAutoEnable",
  "LensOverlay",
  "MediaRouter",
  "PaintHolding",
  "ThirdPartyStoragePartitioning",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "TcpPortRandomizationWin",
  "OptimizationHints",
  "NetworkTimeServiceQuerying",
  "AimEnabled",
  "PreconnectToSearch",
  "PreloadTopChromeWebUI",
  "SpareRendererForSitePerProcess",
  "WebUIOmniboxPopup",
  "InitialWebUI",
  "WebUIReloadButton",
  "SidePanelPinning",
  "ReadAnything",
  "Glic",
];

export async function launchBrowser(): Promise<Browser> {
  const folder = await installedPackage(PLAYWRIGHT);
  const axe = readFileSync(join(await installedPackage(AXE), "axe.min.js"), "utf8");
  const { chromium } = (await import(join(folder, "index.mjs"))) as {
    chromium: { launch(options: object): Promise<Launched> };
  };
  const home = mkdtempSync(join(tmpdir(), "signalbox-chromium-"));
  const launched = await chromium.launch({
    executablePath: programPath("chromium"),
    // Root may not use the sandbox; nothing but the gateway is opened.
    args: [
      "--no-sandbox",
      "--disable-dev-shm-usage",
      "--disable-gpu",
      "--force-color-profile=srgb",
      `--disable-features=${WITHOUT_FEATURES.join(",")}`,
    ],
    env: { ...process.env, HOME: home },
  });
  return {
    context: (options = {}) => launched.newContext({ viewport: { width: 1280, height: 900 }, ...options }),
    open: (context, url) => openWatched(context, url, axe),
    async close() {
      await launched.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Waits until a script says yes; the page's own policy lets none be made of a text, and so does this. */
export async function untilPage(page: Page, script: string): Promise<void> {
  await waitFor(`the page says: ${script}`, () => page.evaluate<boolean>(script), {
    timeoutMs: WAIT_MS,
    intervalMs: 20,
  });
}

async function openWatched(context: Context, url: string, axe: string): Promise<WatchedPage> {
  const page = await context.newPage();
  const offences: string[] = [];
  const { origin } = new URL(url);
  (page as Page & { setDefaultTimeout(ms: number): void }).setDefaultTimeout(WAIT_MS);
  page.on("console", (message: { type(): string; text(): string }) => {
    if (message.type() === "error" || message.type() === "warning") offences.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error: Error) => offences.push(`exception: ${error.stack ?? error.message}`));
  page.on("request", (request: { url(): string }) => {
    if (!request.url().startsWith(`${origin}/`)) offences.push(`request to another host: ${request.url()}`);
  });
  page.on("dialog", (dialog: { message(): string; dismiss(): Promise<void> }) => {
    offences.push(`a dialog of a script: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.addInitScript(
    "globalThis.violations = []; addEventListener('securitypolicyviolation', (event) => violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`), true);",
  );
  await page.goto(url);
  return {
    page,
    offences,
    async barriers(rules) {
      await page.evaluate(`if (globalThis.axe === undefined) { ${axe} } undefined`);
      const options = JSON.stringify({ resultTypes: ["violations"], runOnly: rules });
      const found = await page.evaluate<AxeViolation[]>(
        `axe.run(document, ${options}).then(({ violations }) => violations)`,
      );
      return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
    },
  };
}

interface AxeViolation {
  id: string;
  nodes: { html: string }[];
}
