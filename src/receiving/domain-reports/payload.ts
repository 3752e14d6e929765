/**
 * Finds the report in a mail and reads it. Unpacked bytes are counted as they come, over all parts of the mail, so that a
 * bomb ends early.
 */
import type { TextDecoder } from 'node:util'
import type { ReadMail } from '../../mail/accept/received-mail.ts'
import { readChunk, sliceChunk } from '../../protocols/message/mime-message.ts'
import { NoReport } from '../../protocols/message/report-mail.ts'
import { streamDecoder } from '../../protocols/mime/charset.ts'
import type { MimeLeaf } from '../../protocols/mime/part-map.ts'
import { decodeContent } from '../../protocols/mime/transfer-encoding.ts'
import { AggregateReader, type AggregateReport } from '../../protocols/reports/dmarc/aggregate-report.ts'
import { readTlsReport, type TlsReport } from '../../protocols/reports/tls/report.ts'
import { isPacked, PACKED_BYTES_MAX, unpacked } from './unpack.ts'

export type Payload = { type: 'dmarc'; report: AggregateReport } | { type: 'tls'; report: TlsReport }

/** Unpacked bytes of all parts of a mail together. */
const UNPACKED_BYTES_MAX = 20_000_000
/** JSON is parsed at once, in 50 ms then. */
const JSON_BYTES_MAX = 4_000_000
/** Parts that are looked at: an explanation, a signature, the report. */
const PARTS_MAX = 6
const TEXTS = new Set(['text/plain', 'text/html', 'message/rfc822'])

/** What the parts of one mail may still unpack. */
interface Room {
  bytes: number
  /** False: XML is refused at its first byte, since it may be long. */
  isXmlWanted: boolean
}

const noTlsReport = () => new NoReport('it is no TLS report')

/** @throws NoReport when the mail has none, or one beyond the limits */
export async function readPayload(mail: ReadMail): Promise<Payload> {
  const room = { bytes: UNPACKED_BYTES_MAX, isXmlWanted: true }
  let failure: NoReport | null = null
  for (const leaf of mail.leaves.filter(mayBeReport).slice(0, PARTS_MAX)) {
    try {
      const bytes = await contentOf(mail, leaf)
      if (isPacked(bytes) || isText(bytes)) return await readReport(unpacked(bytes), room)
    } catch (error) {
      if (!(error instanceof NoReport)) throw error
      failure ??= error
    }
  }
  throw failure ?? new NoReport('no part of the mail is a report')
}

/** Reads a TLS report that came without a mail. @throws NoReport as `readPayload` */
export async function readTlsFile(bytes: Buffer): Promise<TlsReport> {
  if (!isPacked(bytes) && !isText(bytes)) throw new NoReport('it is neither packed nor text')
  const payload = await readReport(unpacked(bytes), { bytes: UNPACKED_BYTES_MAX, isXmlWanted: false })
  if (payload.type !== 'tls') throw noTlsReport()
  return payload.report
}

/** Texts are explanations, unless they are files: some reporters call any attachment text. */
const mayBeReport = ({ type, disposition, filename }: MimeLeaf) =>
  !TEXTS.has(type) || (type !== 'message/rfc822' && (disposition === 'attachment' || filename !== ''))

const isText = (bytes: Buffer) => /^[\s\ufeff]*[<{]/.test(decoderFor(bytes).decode(bytes.subarray(0, 256)))

/** UTF-16 by its mark, else what the XML declares; some programs declare the UTF-16 of their strings in UTF-8. */
function decoderFor(begin: Buffer): TextDecoder {
  const mark = begin.toString('latin1', 0, 2)
  if (mark === '\xff\xfe' || mark === '\xfe\xff')
    return streamDecoder(mark === '\xff\xfe' ? 'utf-16le' : 'utf-16be')
  const declared = /^\s*<\?xml\s[^>]{0,100}?encoding=["']([\w.-]{1,40})["']/.exec(
    begin.toString('latin1', 0, 256),
  )?.[1]
  return streamDecoder(declared === undefined || /^utf-?16/i.test(declared) ? 'utf-8' : declared)
}

async function contentOf({ chunk, bodyStart }: ReadMail, leaf: MimeLeaf): Promise<Buffer> {
  if (leaf.sizeBytes > PACKED_BYTES_MAX) throw new NoReport('an attachment is too large')
  const encoded = await readChunk(sliceChunk(chunk, bodyStart + leaf.start, bodyStart + leaf.end))
  const bytes = Buffer.from(decodeContent(encoded, leaf.encoding))
  return BASE64_OF_PACKED.test(bytes.toString('latin1', 0, 8))
    ? Buffer.from(bytes.toString('latin1'), 'base64')
    : bytes
}

/** How gzip and ZIP begin in base64, where a part does not say that it is. */
const BASE64_OF_PACKED = /^(?:H4sI|UEsDB)/

async function readReport(bytes: AsyncIterable<Buffer>, room: Room): Promise<Payload> {
  let decoder: TextDecoder | null = null
  let begin = ''
  let xml: AggregateReader | null = null
  let json = ''
  let sizeBytes = 0
  for await (const piece of bytes) {
    sizeBytes += piece.length
    room.bytes -= piece.length
    if (room.bytes < 0) throw new NoReport('the report is too large')
    decoder ??= decoderFor(piece)
    const text = decoder.decode(piece, { stream: true })
    if (begin === '') {
      begin = text.trimStart().slice(0, 1)
      if (begin === '<' && !room.isXmlWanted) throw noTlsReport()
      if (begin === '<') xml = new AggregateReader()
      else if (begin !== '{' && begin !== '') throw new NoReport('neither XML nor JSON')
    }
    if (xml !== null) xml.push(text)
    else if (sizeBytes > JSON_BYTES_MAX) throw new NoReport('the JSON is too large')
    else json += text
  }
  return xml === null ? { type: 'tls', report: readTlsReport(json) } : { type: 'dmarc', report: xml.end() }
}
