/**
 * A MIME message as received by HTTP or SMTP: its header block is read, its parts are located, its body stays where
 * it is.
 *
 * A message whose type is `multipart/<prefix>-variables` is a container: JSON with the recipient variables,
 * and the message to send (smtp-submission.md, "Container for large recipient variables").
 */
import { BadRequest } from '../../base/process/errors.ts'
import { type Chunk, chunkSize, readChunk, sliceChunk } from '../../protocols/message/mime-message.ts'
import { decodeCharset } from '../../protocols/mime/charset.ts'
import { findLeaves, type MimeLeaf } from '../../protocols/mime/part-map.ts'
import { MimeSyntaxError, type RawHeader, readHead, splitMessage } from '../../protocols/mime/split.ts'
import { decodeContent } from '../../protocols/mime/transfer-encoding.ts'
import { mergeValues, type OptionValues, splitOptionHeaders } from './options.ts'

export interface MimeSource {
  /** The fields of the mail in order: no options, no Bcc. */
  headers: RawHeader[]
  /** The whole input and where the body lies in it. */
  chunk: Chunk
  bodyStart: number
  bodyEnd: number
  /** Offsets count from `bodyStart`. */
  leaves: MimeLeaf[]
}

export interface ReadMime {
  source: MimeSource
  values: OptionValues
  optionBytes: number
  /** Names of header fields under a prefix that are no options. */
  unknown: readonly string[]
}

const NOT_SENT = /^(?:bcc|resent-bcc)$/i
/** More than recipient variables of 1,000 recipients with 16 KB each. */
const VARIABLES_BYTES_MAX = 16 * 1024 * 1024

/** @throws BadRequest `cannot parse message`, or `malformed multipart` for a bad container */
export async function readMimeSource(chunk: Chunk, prefixes: readonly string[]): Promise<ReadMime> {
  try {
    const outer = await readBlock(chunk, 0, chunkSize(chunk), prefixes)
    return (await openContainer(outer, prefixes)) ?? outer
  } catch (error) {
    if (!(error instanceof MimeSyntaxError)) throw error
    throw new BadRequest('cannot parse message', { cause: error })
  }
}

async function readBlock(
  chunk: Chunk,
  start: number,
  end: number,
  prefixes: readonly string[],
): Promise<ReadMime> {
  const head = splitMessage(await readHead(sliceChunk(chunk, start, end)))
  const bodyStart = Math.min(start + head.bodyOffset, end)
  const { values, rest, unknown, optionBytes } = splitOptionHeaders(head.headers, prefixes)
  const headers = rest.filter(({ name }) => !NOT_SENT.test(name))
  const leaves = await findLeaves(head.headers, sliceChunk(chunk, bodyStart, end))
  return { source: { headers, chunk, bodyStart, bodyEnd: end, leaves }, values, optionBytes, unknown }
}

/** Null if the message is not a container. */
async function openContainer(outer: ReadMime, prefixes: readonly string[]): Promise<ReadMime | null> {
  const { source } = outer
  const type = source.headers.find(({ name }) => name.toLowerCase() === 'content-type')?.value ?? ''
  const names = ['x-mailgun-', ...prefixes].map((prefix) => prefix.toLowerCase().replace(/^x-|-$/g, ''))
  const subtype = /^\s*multipart\/([a-z0-9-]+)-variables\s*(?:;|$)/i.exec(type)?.[1]?.toLowerCase()
  if (subtype === undefined || !names.includes(subtype)) return null
  const [json, inner, third] = source.leaves
  const fits = json?.type === 'application/json' && inner?.type === 'message/rfc822' && third === undefined
  if (!json || !inner || !fits || json.end - json.start > VARIABLES_BYTES_MAX) {
    throw new BadRequest('malformed multipart')
  }
  const message = await readBlock(
    source.chunk,
    source.bodyStart + inner.start,
    source.bodyStart + inner.end,
    prefixes,
  )
  const variables = new Map([['recipient-variables', [await leafText(source, json)]]])
  return {
    source: message.source,
    values: mergeValues(message.values, outer.values, variables),
    optionBytes: outer.optionBytes + message.optionBytes,
    unknown: [...outer.unknown, ...message.unknown],
  }
}

async function leafText({ chunk, bodyStart }: MimeSource, leaf: MimeLeaf): Promise<string> {
  const bytes = await readChunk(sliceChunk(chunk, bodyStart + leaf.start, bodyStart + leaf.end))
  return decodeCharset(decodeContent(bytes, leaf.encoding), leaf.charset)
}
