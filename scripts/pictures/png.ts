/**
 * Pictures of pages with a palette of 256 colours: a third of the size that a browser writes (PNG, RFC 2083). Only what
 * browsers write is read: 8 bits, RGB or RGBA, not interlaced, opaque.
 */
import { crc32, deflateSync, inflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const COLOURS_MAX = 256

interface Pixels {
  width: number
  height: number
  /** Red, green and blue of each pixel. */
  rgb: Uint8Array
}

/** The same picture with at most 256 colours. @throws Error for other kinds of PNG */
export function withPalette(png: Buffer): Buffer {
  const { width, height, rgb } = decode(png)
  const { palette, indexes } = paletteOf(rgb)
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y++) rows.set(indexes.subarray(y * width, (y + 1) * width), y * (width + 1) + 1)
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header[8] = 8 // bits
  header[9] = 3 // palette
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(palette)),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const ends = Buffer.alloc(8)
  ends.writeUInt32BE(data.length, 0)
  ends.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)])
}

function decode(png: Buffer): Pixels {
  if (!png.subarray(0, 8).equals(SIGNATURE)) throw new Error('Not a PNG')
  const parts: Buffer[] = []
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  const [bits, type, interlaced] = [png[24], png[25], png[28]]
  if (bits !== 8 || (type !== 2 && type !== 6) || interlaced !== 0) throw new Error('Not such a PNG')
  const size = type === 6 ? 4 : 3
  const bytes = unfilter(inflateSync(Buffer.concat(parts)), width * size, height, size)
  const rgb = new Uint8Array(width * height * 3)
  for (let at = 0; at < width * height; at++) rgb.set(bytes.subarray(at * size, at * size + 3), at * 3)
  return { width, height, rgb }
}

/** RFC 2083 section 6. */
function unfilter(raw: Buffer, stride: number, height: number, size: number): Uint8Array {
  const bytes = new Uint8Array(stride * height)
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)] as number
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x
      const left = x < size ? 0 : (bytes[at - size] as number)
      const up = y === 0 ? 0 : (bytes[at - stride] as number)
      const corner = x < size || y === 0 ? 0 : (bytes[at - stride - size] as number)
      const guesses = [0, left, up, (left + up) >> 1, paeth(left, up, corner)]
      bytes[at] = (raw[at + y + 1] as number) + (guesses[filter] as number)
    }
  }
  return bytes
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
  if (a <= b && a <= c) return left
  return b <= c ? up : corner
}

/**
 * The most frequent colours, far enough from each other; a page has few, and the edges of letters lie between them. Every
 * other colour becomes the nearest one.
 */
function paletteOf(rgb: Uint8Array): { palette: number[]; indexes: Uint8Array } {
  const counts = new Map<number, number>()
  const keyAt = (at: number) =>
    ((rgb[at] as number) << 16) | ((rgb[at + 1] as number) << 8) | (rgb[at + 2] as number)
  for (let at = 0; at < rgb.length; at += 3) counts.set(keyAt(at), (counts.get(keyAt(at)) ?? 0) + 1)
  const frequent = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour)
  let chosen: number[] = frequent
  for (let apart = 0; chosen.length > COLOURS_MAX; apart = apart === 0 ? 8 : apart * 2) {
    chosen = []
    for (const colour of frequent)
      if (chosen.length <= COLOURS_MAX && chosen.every((one) => distance(one, colour) > apart))
        chosen.push(colour)
  }
  const nearest = new Map<number, number>()
  for (const colour of frequent) {
    let best = 0
    for (let at = 1; at < chosen.length; at++)
      if (distance(chosen[at] as number, colour) < distance(chosen[best] as number, colour)) best = at
    nearest.set(colour, best)
  }
  const indexes = new Uint8Array(rgb.length / 3)
  for (let at = 0; at < indexes.length; at++) indexes[at] = nearest.get(keyAt(at * 3)) as number
  return {
    palette: chosen.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]),
    indexes,
  }
}

/** Squared, of red, green and blue. */
function distance(one: number, other: number): number {
  const red = (one >> 16) - (other >> 16)
  const green = ((one >> 8) & 255) - ((other >> 8) & 255)
  const blue = (one & 255) - (other & 255)
  return red * red + green * green + blue * blue
}
