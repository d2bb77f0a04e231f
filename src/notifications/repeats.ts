// Repeated events: of a backend that goes up and down, each event is told once within a time, and its last state when the
// time is over.

import type { Happened } from "./notice.ts";

interface RepeatsParts {
  windowMs: number;
  now(): number;
  tell(event: Happened): void;
}

interface Subject {
  /** When each type was told last. */
  toldMs: Map<string, number>;
  lastType: string;
  /** The latest event, while one of its type was told a short time ago. */
  held: Happened | undefined;
}

/** Subjects that are remembered; the oldest is forgotten first. */
const MOST_SUBJECTS = 10_000;

export function createRepeats({ windowMs, now, tell }: RepeatsParts) {
  const subjects = new Map<string, Subject>();

  function isRecent(subject: Subject, type: string): boolean {
    return now() - (subject.toldMs.get(type) ?? Number.NEGATIVE_INFINITY) < windowMs;
  }

  function told(subject: Subject, event: Happened): void {
    subject.toldMs.set(event.type, now());
    subject.lastType = event.type;
    subject.held = undefined;
    tell(event);
  }

  return {
    add(event: Happened): void {
      const key = `${event.type.split("_", 1)[0]}:${event.subject}`;
      const subject: Subject = subjects.get(key) ?? { toldMs: new Map(), lastType: "", held: undefined };
      if (!subjects.has(key)) {
        const [oldest] = subjects.keys();
        if (subjects.size >= MOST_SUBJECTS && oldest !== undefined) subjects.delete(oldest);
        subjects.set(key, subject);
      }
      if (isRecent(subject, event.type)) subject.held = event;
      else told(subject, event);
    },
    /** To be called again and again: tells the state that a subject has come to rest in. */
    sweep(): void {
      for (const [key, subject] of subjects) {
        const { held, toldMs } = subject;
        if (held !== undefined && !isRecent(subject, held.type)) {
          if (held.type !== subject.lastType) told(subject, held);
          subject.held = undefined;
        }
        if (![...toldMs.keys()].some((type) => isRecent(subject, type))) subjects.delete(key);
      }
    },
  };
}
