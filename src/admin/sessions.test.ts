// Sign-ins of browsers: their ids, their ends, their number, and the cookie that carries them.

import { describe, expect, test } from "bun:test";
import { createSessions, IDLE_SESSION_MS, SESSION_MS, sessionCookie, sessionIds } from "./sessions.ts";

const HOLDER = { credential: Buffer.from("digest") };

function setUp() {
  const time = { ms: 0 };
  return { time, sessions: createSessions(() => time.ms) };
}

describe("sign-ins", () => {
  test("have ids of 256 random bits, and are found by them alone", () => {
    const { sessions } = setUp();
    const { id, session } = sessions.open(HOLDER);
    expect(Buffer.from(id, "base64url").length).toBe(32);
    expect(sessions.open(HOLDER).id).not.toBe(id);
    expect(sessions.find(id)).toBe(session);
    for (const wrong of ["", `${id}x`, id.slice(1), "A".repeat(43), "__proto__"])
      expect(sessions.find(wrong)).toBeUndefined();
    sessions.close(id);
    expect(sessions.find(id)).toBeUndefined();
  });

  test("end when nobody uses them, and at last although somebody does", () => {
    const { sessions, time } = setUp();
    const [idle, busy] = [sessions.open(HOLDER), sessions.open(HOLDER)];
    for (time.ms = 0; time.ms < SESSION_MS; time.ms += IDLE_SESSION_MS - 1) {
      expect(sessions.goesOn(busy.id, busy.session)).toBe(true);
      if (time.ms > IDLE_SESSION_MS) expect(sessions.find(idle.id)).toBeUndefined();
    }
    expect(sessions.find(busy.id)).toBeUndefined();
    expect(sessions.goesOn(busy.id, busy.session)).toBe(false);
  });

  test("are bounded in number: the one that was quiet for longest goes", () => {
    const { sessions } = setUp();
    const [first, second] = [sessions.open(HOLDER).id, sessions.open(HOLDER).id];
    for (let count = 0; count < 999; count++) {
      sessions.find(first);
      sessions.open(HOLDER);
    }
    expect(sessions.size).toBe(1_000);
    expect(sessions.find(second)).toBeUndefined();
    expect(sessions.find(first)).toBeDefined();
  });
});

describe("the cookie", () => {
  const request = (host: string, headers: Record<string, string> = {}) =>
    new Request(`http://${host}/admin/session`, { headers: { Host: host, ...headers } });

  test("is the browser's alone, for this gateway's admin API, and encrypted where the way is", () => {
    expect(sessionCookie(request("a.example:8080"), "x")).toBe(
      "signalbox_session_8080=x; Path=/admin; Max-Age=43200; HttpOnly; SameSite=Strict",
    );
    expect(sessionCookie(request("a.example", { "X-Forwarded-Proto": "https" }), "x")).toEndWith("; Secure");
    expect(sessionCookie(request("a.example", { "X-Forwarded-Proto": "https, http" }), "x")).toEndWith("; Secure");
    expect(sessionCookie(request("a.example", { Origin: "https://a.example" }), "x")).toEndWith("; Secure");
    for (const headers of [{ "X-Forwarded-Proto": "http, https" }, { Origin: "http://a.example" }] as const)
      expect(sessionCookie(request("a.example", headers as Record<string, string>), "x")).not.toContain("Secure");
    expect(sessionCookie(request("a.example"), undefined)).toContain("signalbox_session=; Path=/admin; Max-Age=0;");
  });

  test("is read beside others, of this port only, and a flood of them is not", () => {
    const cookies = (host: string, text: string) => sessionIds(request(host, { Cookie: text }).headers);
    expect(cookies("[::1]:80", "a=1; signalbox_session_80=x;signalbox_session=y; signalbox_session_8080=z")).toEqual([
      "x",
    ]);
    expect(cookies("a.example", "signalbox_session=y; signalbox_session=z")).toEqual(["y", "z"]);
    expect(cookies("a.example", "signalbox_session; signalbox_session=")).toEqual(["", ""]);
    expect(cookies("a.example", "signalbox_session=x;".repeat(100))).toHaveLength(4);
  });
});
