// Spellings of a path that some server on the way to the gateway, or the runtime itself, takes for that path.

export interface Disguise {
  name: string;
  /** The target for a path such as "/admin/config". */
  of(path: string): string;
}

const segments = (path: string) => path.slice(1).split("/");
const percent = (text: string) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join("");
const firstLetter = (path: string, spelled: (letter: string) => string) => path.replace(/(?<=^\/)[a-z]/, spelled);

/** Each is 400, whatever the path. */
export const DISGUISES: readonly Disguise[] = [
  { name: "out of /v1 with a dot segment", of: (path) => `/v1/..${path}` },
  { name: "out of /v1 with a backslash", of: (path) => `/v1/..\\${path.slice(1)}` },
  { name: "out of /v1 with backslashes", of: (path) => `/v1\\..${path.replaceAll("/", "\\")}` },
  { name: "out of two segments", of: (path) => `/v1/models/../..${path}` },
  { name: "out of a parameter", of: (path) => `/v1/models/x/../../..${path}` },
  { name: "out of segments that are no route", of: (path) => `/x/y/z/../../..${path}` },
  { name: "above the root", of: (path) => `/../..${path}` },
  { name: "encoded dots", of: (path) => `/v1/%2e%2e${path}` },
  { name: "encoded dots in capitals", of: (path) => `/v1/%2E%2E${path}` },
  { name: "one encoded dot", of: (path) => `/v1/.%2e${path}` },
  { name: "the other encoded dot", of: (path) => `/v1/%2e.${path}` },
  { name: "encoded dots and a backslash", of: (path) => `/v1/%2e%2e\\${path.slice(1)}` },
  { name: "encoded slashes around the dots", of: (path) => `/v1%2f..%2f${path.slice(1)}` },
  { name: "an encoded slash behind the dots", of: (path) => `/v1/..%2f${path.slice(1)}` },
  { name: "everything encoded around the dots", of: (path) => `/v1%2f%2e%2e%2f${path.slice(1)}` },
  { name: "encoded backslashes around the dots", of: (path) => `/v1%5c..%5c${path.slice(1)}` },
  { name: "dots encoded twice", of: (path) => `/v1/%252e%252e${path}` },
  { name: "slashes encoded twice", of: (path) => `/v1%252f..%252f${path.slice(1)}` },
  { name: "dots encoded three times", of: (path) => `/v1/%25252e%25252e${path}` },
  { name: "a single dot in front", of: (path) => `/.${path}` },
  { name: "a single encoded dot in front", of: (path) => `/%2e${path}` },
  {
    name: "a single dot between",
    of: (path) =>
      `/.${segments(path)
        .map((segment) => `/${segment}`)
        .join("/.")}`,
  },
  { name: "two slashes in front", of: (path) => `/${path}` },
  { name: "three slashes in front", of: (path) => `//${path}` },
  { name: "two slashes behind /v1/..", of: (path) => `/v1/../${path}` },
  { name: "two slashes between", of: (path) => `/${segments(path).join("//")}/`.replace(/^\/([^/]+)\/$/, "//$1") },
  { name: "an encoded slash in front", of: (path) => `/%2f${path.slice(1)}` },
  { name: "an encoded slash in capitals", of: (path) => `/%2F${path.slice(1)}` },
  { name: "a slash encoded twice in front", of: (path) => `/%252f${path.slice(1)}` },
  { name: "an encoded backslash in front", of: (path) => `/%5c${path.slice(1)}` },
  { name: "a backslash behind the first slash", of: (path) => `/\\${path.slice(1)}` },
  { name: "the first letter encoded", of: (path) => firstLetter(path, percent) },
  {
    name: "the first letter encoded twice",
    of: (path) => firstLetter(path, (letter) => `%25${percent(letter).slice(1)}`),
  },
  { name: "all letters encoded", of: (path) => `/${segments(path).map(percent).join("/")}` },
  { name: "a fragment", of: (path) => `${path}#x` },
  { name: "a fragment in front", of: (path) => `/v1/#/..${path}` },
  { name: "a zero byte behind it", of: (path) => `${path}%00` },
  { name: "a line break behind it", of: (path) => `${path}%0d%0a` },
  { name: "a tab behind it", of: (path) => `${path}%09` },
  { name: "the absolute form with dots", of: (path) => `http://127.0.0.1/v1/..${path}` },
  { name: "the absolute form of another host with dots", of: (path) => `http://elsewhere/v1/..${path}` },
  { name: "the absolute form with two slashes", of: (path) => `http://127.0.0.1/${path}` },
  { name: "overlong UTF-8 for a slash", of: (path) => `/v1/..%c0%af${path.slice(1)}` },
  { name: "overlong UTF-8 for dots", of: (path) => `/v1/%c0%ae%c0%ae${path}` },
];

/** Spellings that mean another path: nothing is there. */
export const OTHER_PATHS: readonly Disguise[] = [
  { name: "capitals", of: (path) => path.toUpperCase() },
  { name: "a path parameter", of: (path) => `${path};x=y` },
  { name: "a blank behind it", of: (path) => `${path}%20` },
  { name: "three dots", of: (path) => `/.../${path.slice(1)}` },
  { name: "dots and a path parameter", of: (path) => `/v1/..;${path}` },
  { name: "a wide slash", of: (path) => `/v1/..%ef%bc%8f${path.slice(1)}` },
  { name: "a single dot at the end", of: (path) => `${path}/.` },
  { name: "there and back", of: (path) => `${path}/x/..` },
  { name: "an extension", of: (path) => `${path}.json` },
];
