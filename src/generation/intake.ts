// What a model takes besides text, as far as its backend says so.

export type Medium = "image" | "audio" | "video";

export const MEDIA: readonly Medium[] = ["image", "audio", "video"];

/** A medium that is not in it is not known. */
export type Intake = Readonly<Partial<Record<Medium, boolean>>>;

/** By model; those of which nothing is known are left out. */
export type Intakes = ReadonlyMap<string, Intake>;

/** What a backend offers under the names that a request may use; another object as soon as any of it has changed. */
export interface Offer {
  readonly intakes: Intakes;
}
