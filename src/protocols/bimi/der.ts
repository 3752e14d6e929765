/** Reads the few structures of DER (X.690 §8) that a mark certificate's logo is in. Never reads beyond its input. */

export interface DerValue {
  tag: number
  content: Buffer
}

/** The values one after the other; null: the bytes are not DER. */
export function derValues(bytes: Buffer): DerValue[] | null {
  const values: DerValue[] = []
  let at = 0
  while (at < bytes.length) {
    const tag = bytes[at] as number
    const first = bytes[at + 1]
    // Tags of several bytes do not occur here; lengths of more than four bytes would be longer than any input.
    if (first === undefined || (tag & 0x1f) === 0x1f) return null
    const lengthBytes = first < 0x80 ? 0 : first & 0x7f
    if (first === 0x80 || lengthBytes > 4 || at + 2 + lengthBytes > bytes.length) return null
    const length = lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes)
    const start = at + 2 + lengthBytes
    if (start + length > bytes.length) return null
    values.push({ tag, content: bytes.subarray(start, start + length) })
    at = start + length
  }
  return values
}

/** The value that a path of tags leads to, the first of each tag; null: there is none. */
export function derAt(bytes: Buffer, path: readonly number[]): Buffer | null {
  let content = bytes
  for (const tag of path) {
    const found = derValues(content)?.find((value) => value.tag === tag)
    if (!found) return null
    content = found.content
  }
  return content
}
