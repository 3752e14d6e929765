/** CRC32c (RFC 3385 §4, Castagnoli's polynomial), reflected. `zlib.crc32` is another polynomial. */
const POLYNOMIAL = 0x82f6_3b78

/** As an unsigned number of 32 bits. Bit by bit: it is called for headers of some hundred bytes. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffff_ffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1
  }
  return (crc ^ 0xffff_ffff) >>> 0
}
