/**
 * The whole message of the raw form (routes-inbound.md section 6). Receivers decode form fields as UTF-8: Rails refuses
 * other bytes, Django replaces them. So 8-bit content that is not UTF-8 is transfer-encoded; decoded it is unchanged.
 */
import { isUtf8 } from 'node:buffer'
import type { StoredHeader } from '../../../mail/record/record.ts'
import {
  type Chunk,
  chunkSize,
  type LazyChunk,
  readChunks,
  scanChunk,
} from '../../../protocols/message/mime-message.ts'
import { type Fit, makeFit } from '../../../protocols/mime/downgrade.ts'
import { MimeSyntaxError } from '../../../protocols/mime/split.ts'

const CONTENT_FIELD = /^content-(?:type|transfer-encoding)$/i

/** As it was received, if it is UTF-8, or signed or encrypted as S/MIME or OpenPGP do, where no byte may change. */
export async function wholeMessage(headers: readonly StoredHeader[], body: Chunk): Promise<LazyChunk> {
  const fit = (await isUtf8Chunk(body)) ? null : await sevenBit(headers, body)
  if (fit === null) return joined(headers, [], [body])
  const kept = fit.fields ? headers.filter(([name]) => !CONTENT_FIELD.test(name)) : headers
  return joined(kept, fit.fields ?? [], fit.body)
}

function joined(
  headers: readonly StoredHeader[],
  fields: readonly string[],
  body: readonly Chunk[],
): LazyChunk {
  const all = [...headers.map(([name, value, raw]) => raw ?? `${name}: ${value}`), ...fields]
  const chunks = [Buffer.from(`${all.map((field) => `${field}\r\n`).join('')}\r\n`), ...body]
  const sizeBytes = chunks.reduce((sum, chunk) => sum + chunkSize(chunk), 0)
  return { sizeBytes, open: () => readChunks(chunks) }
}

async function isUtf8Chunk(body: Chunk): Promise<boolean> {
  if (body instanceof Uint8Array) return isUtf8(body)
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    for await (const bytes of scanChunk(body)) decoder.decode(bytes, { stream: true })
    decoder.decode()
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return false
    throw error
  }
}

/** Null: it cannot be converted. */
async function sevenBit(headers: readonly StoredHeader[], body: Chunk): Promise<Fit | null> {
  const given = headers.map(([name, value, raw]) => ({ name, value, raw: raw ?? `${name}: ${value}` }))
  try {
    return await makeFit(given, [body], 'seven-bit')
  } catch (error) {
    if (error instanceof MimeSyntaxError) return null
    throw error
  }
}
