/** Bytes that threads share: sent in a message they are not copied, so they take memory once. */

/** `bytes`, copied unless they are shared already; not to be changed. */
export function sharedBytes(bytes: Uint8Array): Buffer {
  if (isShared(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const shared = Buffer.from(new SharedArrayBuffer(bytes.byteLength))
  shared.set(bytes)
  return shared
}

export const isShared = (bytes: Uint8Array): boolean => bytes.buffer instanceof SharedArrayBuffer
