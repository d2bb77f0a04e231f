// What can be wrong with a form, in words for its sender.

type MultipartTrouble =
  | "notAForm"
  | "noBoundary"
  | "boundaryNotFound"
  | "cutOff"
  | "tooManyParts"
  | "tooMuchOutside"
  | "headTooLarge"
  | "headBroken"
  | "noName"
  | "nested"
  | "encoded"
  | "notText";

export class MultipartFault extends Error {
  readonly trouble: MultipartTrouble;
  /** Name of the field at fault, where it has one. */
  readonly field: string | undefined;

  constructor(trouble: MultipartTrouble, message: string, field?: string) {
    super(message);
    this.name = "MultipartFault";
    this.trouble = trouble;
    this.field = field;
  }
}
