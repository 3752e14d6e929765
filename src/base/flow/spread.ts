/** A hash that distributes texts evenly (FNV-1a): a whole number below 2^32, the same for the same text. */
export function spread(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}
