/**
 * Finds the report in a mail and unpacks it: gzip, ZIP or plain, recognised by its first bytes, since types and names of
 * attachments differ between reporters. Unpacked bytes are counted as they come, so that a bomb ends early.
 */
import { Readable, type Transform } from 'node:stream'
import { createGunzip, createInflateRaw } from 'node:zlib'
import { readChunk, sliceChunk } from '../base/mime-message.ts'
import { NoReport } from '../base/report-mail.ts'
import { AggregateReader, type AggregateReport } from '../dmarc/aggregate-report.ts'
import type { ReadMail } from '../messages/received/received-mail.ts'
import type { MimeLeaf } from '../mime/part-map.ts'
import { decodeContent } from '../mime/transfer-encoding.ts'
import { readTlsReport, type TlsReport } from '../tls-rpt/report.ts'
import { readZip } from './zip.ts'

export type Payload = { type: 'dmarc'; report: AggregateReport } | { type: 'tls'; report: TlsReport }

/** As sent; Gmail's reports about busy domains have 100 KB. */
const PACKED_BYTES_MAX = 2_000_000
export const UNPACKED_BYTES_MAX = 20_000_000
/** JSON is parsed at once, in 50 ms then. */
const JSON_BYTES_MAX = 4_000_000
/** Parts that are looked at: an explanation, a signature, the report. */
const PARTS_MAX = 6
const PIECE_BYTES = 65_536
const TEXTS = new Set(['text/plain', 'text/html', 'message/rfc822'])

/** @throws NoReport when the mail has none, or one beyond the limits */
export async function readPayload(mail: ReadMail): Promise<Payload> {
  for (const leaf of mail.leaves.filter(({ type }) => !TEXTS.has(type)).slice(0, PARTS_MAX)) {
    const bytes = await contentOf(mail, leaf)
    if (looksPacked(bytes) || /^[\s\ufeff]*[<{]/.test(bytes.toString('utf8', 0, 256)))
      return readReport(unpacked(bytes))
  }
  throw new NoReport('no part of the mail is a report')
}

async function contentOf({ chunk, bodyStart }: ReadMail, leaf: MimeLeaf): Promise<Buffer> {
  if (leaf.sizeBytes > PACKED_BYTES_MAX) throw new NoReport('an attachment is too large')
  const encoded = await readChunk(sliceChunk(chunk, bodyStart + leaf.start, bodyStart + leaf.end))
  return Buffer.from(decodeContent(encoded, leaf.encoding))
}

const isGzip = (bytes: Buffer) => bytes[0] === 0x1f && bytes[1] === 0x8b
const isZip = (bytes: Buffer) => bytes.toString('latin1', 0, 4) === 'PK\x03\x04'
const looksPacked = (bytes: Buffer) => isGzip(bytes) || isZip(bytes)

function unpacked(bytes: Buffer): AsyncIterable<Buffer> {
  if (isGzip(bytes)) return through(bytes, createGunzip({ chunkSize: PIECE_BYTES }))
  if (!isZip(bytes)) return pieces(bytes)
  const { deflated, content } = readZip(bytes)
  return deflated ? through(content, createInflateRaw({ chunkSize: PIECE_BYTES })) : pieces(content)
}

async function* through(bytes: Buffer, inflate: Transform): AsyncGenerator<Buffer> {
  try {
    for await (const piece of Readable.from([bytes]).pipe(inflate)) yield piece as Buffer
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw error
    throw new NoReport('the packed data is damaged')
  }
}

async function* pieces(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    // Other work runs in between.
    if (at > 0) await new Promise((resolve) => setImmediate(resolve))
    yield bytes.subarray(at, at + PIECE_BYTES)
  }
}

async function readReport(bytes: AsyncIterable<Buffer>): Promise<Payload> {
  const decoder = new TextDecoder()
  let begin = ''
  let xml: AggregateReader | null = null
  let json = ''
  let sizeBytes = 0
  for await (const piece of bytes) {
    sizeBytes += piece.length
    if (sizeBytes > UNPACKED_BYTES_MAX) throw new NoReport('the report is too large')
    const text = decoder.decode(piece, { stream: true })
    if (begin === '') {
      begin = text.trimStart().slice(0, 1)
      if (begin === '<') xml = new AggregateReader()
      else if (begin !== '{' && begin !== '') throw new NoReport('neither XML nor JSON')
    }
    if (xml !== null) xml.push(text)
    else if (sizeBytes > JSON_BYTES_MAX) throw new NoReport('the JSON is too large')
    else json += text
  }
  return xml === null ? { type: 'tls', report: readTlsReport(json) } : { type: 'dmarc', report: xml.end() }
}
