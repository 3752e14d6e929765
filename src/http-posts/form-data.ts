/** Writes `multipart/form-data` (RFC 7578), as browsers do: names in UTF-8, line ends and quotes percent-encoded. */
import { randomHex } from '../base/ids.ts'
import { type Chunk, chunkSize, readChunks } from '../base/mime-message.ts'

export interface FormPart {
  name: string
  value: string | Chunk
  /** With a file name the part is a file. */
  file?: { name: string; contentType: string }
}

export interface EncodedForm {
  contentType: string
  /** In memory if all of it is, and small. */
  body: Chunk
}

const IN_MEMORY_BYTES_MAX = 512 * 1024

export function encodeForm(parts: readonly FormPart[]): EncodedForm {
  const boundary = `sendwright-${randomHex(16)}`
  const chunks: Chunk[] = []
  for (const { name, value, file } of parts) {
    chunks.push(Buffer.from(`--${boundary}\r\n${headOf(name, file)}\r\n\r\n`))
    chunks.push(typeof value === 'string' ? Buffer.from(value) : value)
    chunks.push(Buffer.from('\r\n'))
  }
  chunks.push(Buffer.from(`--${boundary}--\r\n`))
  return { contentType: `multipart/form-data; boundary=${boundary}`, body: joined(chunks) }
}

function headOf(name: string, file: FormPart['file']): string {
  const disposition = `Content-Disposition: form-data; name="${escaped(name)}"`
  if (!file) return disposition
  const { name: filename, contentType } = file
  return `${disposition}; filename="${escaped(filename)}"\r\nContent-Type: ${contentType.replaceAll(/[\r\n]/g, '')}`
}

const escaped = (text: string) =>
  text.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22').toWellFormed()

function joined(chunks: readonly Chunk[]): Chunk {
  const sizeBytes = chunks.reduce((sum, chunk) => sum + chunkSize(chunk), 0)
  const inMemory = chunks.filter((chunk) => chunk instanceof Uint8Array)
  if (sizeBytes <= IN_MEMORY_BYTES_MAX && inMemory.length === chunks.length) return Buffer.concat(inMemory)
  return { sizeBytes, open: () => readChunks(chunks) }
}
