// What a hook has done that it may not do.

/** Its message is for the operator. */
export class HookFault extends Error {
  override readonly name = "HookFault";
}
