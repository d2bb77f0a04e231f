// Takes the pictures of docs/images: `sh bin/bun test/dashboard/take-pictures.ts [folder]`, which takes six minutes: the charts
// have to be full.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Browser, launchBrowser, untilPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";

const FOLDER = process.argv[2] ?? join(import.meta.dir, "..", "..", "docs", "images");

/** Pages by the names of their pictures, light and dark and narrow where that shows more. */
const PICTURES = [
  { name: "overview", path: "#/overview?range=15m", looks: ["light", "dark", "narrow"] },
  { name: "requests", path: "#/requests", looks: ["light", "dark"] },
  { name: "request", path: "", looks: ["light", "dark", "narrow"] },
  { name: "errors", path: "#/errors", looks: ["light", "dark"] },
  { name: "backends", path: "#/backends", looks: ["light", "dark"] },
  { name: "keys", path: "#/keys", looks: ["light", "dark"] },
  { name: "configuration", path: "#/configuration/retry", looks: ["light", "dark"] },
  { name: "usage", path: "#/usage", looks: ["light"] },
  { name: "playground", path: "#/playground", looks: ["light"] },
] as const;

const SIZES = {
  light: { width: 1440, height: 900 },
  dark: { width: 1440, height: 900 },
  narrow: { width: 390, height: 844 },
} as const;

async function take(browser: Browser, busy: BusyGateway): Promise<void> {
  const { url } = busy.gateway;
  const told = await busy.gateway.fetch("/admin/requests?backend=gpu-3&status=2xx");
  const { requests } = (await told.json()) as {
    requests: { id: string; attempts: number; outcome: string; stream: boolean }[];
  };
  const story =
    requests.find(({ attempts, outcome, stream }) => attempts > 1 && outcome === "succeeded" && stream) ?? requests[0];
  for (const { name, path, looks } of PICTURES) {
    for (const look of looks) {
      const colorScheme = look === "dark" ? "dark" : "light";
      const context = await browser.context({
        viewport: SIZES[look],
        colorScheme,
        deviceScaleFactor: look === "narrow" ? 2 : 1,
      });
      const { page, offences } = await browser.open(
        context,
        `${url}/dashboard${path === "" ? `#/request/${story?.id}` : path}`,
      );
      await page.locator("main h1").waitFor();
      await untilPage(page, "!document.body.textContent.includes('Loading…')");
      if (name === "configuration") {
        const editor = page.locator("#editor");
        await editor.fill((await editor.inputValue()).replace(/max_attempts: \d+/, "max_attempts: 5"));
        await page.getByText("Would be accepted").waitFor();
      }
      if (name === "playground") {
        await page.getByLabel("Model", { exact: true }).fill("qwen3-32b");
        await page.locator("#prompt").fill("Is the line clear?");
        await page.locator("#prompt").press("Enter");
        await page.getByText("done after").waitFor();
      }
      await Bun.sleep(1_500);
      await page.screenshot({
        path: join(FOLDER, `dashboard-${name}-${look}.png`),
        fullPage: false,
      });
      for (const offence of offences) console.log(`${name} ${look}: ${offence}`);
      await context.close();
    }
  }
}

mkdirSync(FOLDER, { recursive: true });
const busy = await startBusyGateway({ config: { metrics: { persistence: { snapshot_interval_seconds: 5 } } } });
const browser = await launchBrowser();
try {
  await busy.load(300);
  const load = busy.keepAsking(13);
  await Bun.sleep(process.argv[3] === undefined ? 320_000 : Number(process.argv[3]));
  await take(browser, busy);
  await load.end();
} finally {
  await browser.close();
  await busy.close();
}
