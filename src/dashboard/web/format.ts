// Numbers, times and names as people read them.

/** The share of requests from which on failures stand out. */
export const NOTABLE_FAILURES = 0.05;

const THIN = "\u202f";

/** "1 234", "12.3k", "4.56M": at most four signs of a number that may be of any size. */
export function count(value: number): string {
  const size = Math.abs(value);
  if (size < 10_000) return grouped(Math.round(value));
  const [unit, divisor] = size < 999_500 ? ["k", 1e3] : size < 999_500_000 ? ["M", 1e6] : ["G", 1e9];
  return `${(value / (divisor as number))
    .toPrecision(3)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "")}${unit}`;
}

export function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** "0", "0.4", "12.5", "340". */
export function rate(value: number): string {
  if (value === 0) return "0";
  if (value < 0.05) return "<0.1";
  return value < 99.95 ? value.toFixed(1) : count(value);
}

/** "85 ms", "1.25 s", "2 min 5 s". */
export function duration(ms: number): string {
  if (ms < 9.95) return `${ms.toFixed(1).replace(/\.0$/, "")} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  return longDuration(Math.round(ms / 1000));
}

/** Of requests, of which some were successful: others have no latency. */
export function latency(ms: number | undefined, of: { successful_requests: number } | undefined): string {
  return ms === undefined || of === undefined || of.successful_requests === 0 ? "–" : duration(ms);
}

/** Of seconds: "42 s", "2 min 5 s", "3 h 20 min", "4 d 2 h". */
export function longDuration(seconds: number): string {
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return pair(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole < 86_400) return pair(Math.floor(whole / 3_600), "h", Math.floor((whole % 3_600) / 60), "min");
  return pair(Math.floor(whole / 86_400), "d", Math.floor((whole % 86_400) / 3_600), "h");
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** Of the requests or attempts that were taken on: refusals and clients that left are no failures. */
export function failedShare(row: { failed_requests: number; successful_requests: number }): number {
  const { failed_requests: failed, successful_requests: succeeded } = row;
  return failed === 0 ? 0 : failed / (failed + succeeded);
}

/** A share of 1: "0 %", "0.04 %", "2.5 %", "37 %". */
export function percent(share: number): string {
  const value = share * 100;
  if (value === 0) return "0 %";
  if (value < 0.01) return "<0.01 %";
  if (value < 0.995) return `${value.toFixed(2)} %`;
  if (value < 9.95) return `${value.toFixed(1)} %`;
  // What is not quite everything must not look like it.
  return value < 100 && value >= 99.5 ? `${(Math.floor(value * 10) / 10).toFixed(1)} %` : `${Math.round(value)} %`;
}

/** In the currency of the prices, which the gateway does not know. */
export function money(value: number): string {
  if (value === 0) return "0.00";
  if (value < 0.005) return value < 0.00005 ? "<0.0001" : value.toFixed(4);
  const [whole, cents] = value.toFixed(2).split(".") as [string, string];
  return `${grouped(Number(whole))}.${cents}`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const [unit, divisor] =
    value < 1024 ** 2 ? ["KiB", 1024] : value < 1024 ** 3 ? ["MiB", 1024 ** 2] : ["GiB", 1024 ** 3];
  const size = value / (divisor as number);
  return `${size < 99.95 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}

/** How long ago: "now", "42 s ago", "5 min ago", "3 h ago", "2 d ago". */
export function ago(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000));
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h ago` : `${Math.floor(seconds / 86_400)} d ago`;
}

/** In the browser's time zone: "14:03:27". */
export function clockTime(at: string | number): string {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(":");
}

/** "2026-03-01 14:03:27" */
export function dateTime(at: string | number): string {
  const date = new Date(at);
  const day = [date.getFullYear(), twoDigits(date.getMonth() + 1), twoDigits(date.getDate())].join("-");
  return `${day} ${clockTime(at)}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

/** "1 request", "2 requests". */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** "warming_up" -> "warming up" */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

/** The value below which the share of them lies; undefined without any. */
export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}
