// A value that is there at once or comes later. Without a promise where none is needed, a caller on the hot path need not await.

export type Eventually<Value> = Value | Promise<Value>;
