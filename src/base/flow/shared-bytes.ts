/** Bytes that threads share: sent in a message they are not copied, so they take memory once. */

/** A copy of `bytes`, not to be changed. */
export function sharedBytes(bytes: Uint8Array): Buffer {
  const shared = Buffer.from(new SharedArrayBuffer(bytes.byteLength))
  shared.set(bytes)
  return shared
}

export const isShared = (bytes: Uint8Array): boolean => bytes.buffer instanceof SharedArrayBuffer
