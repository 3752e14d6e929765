/** Writes `multipart/form-data` (RFC 7578), as browsers do: names in UTF-8, line ends and quotes percent-encoded. */
import { randomHex } from '../../base/ids.ts'

export interface FormPart {
  name: string
  value: string | Uint8Array | { open(): AsyncIterable<Uint8Array> }
  /** With a file name the part is a file. */
  file?: { name: string; contentType: string }
}

export const newBoundary = (): string => `sendwright-${randomHex(16)}`

export const formType = (boundary: string): string => `multipart/form-data; boundary=${boundary}`

/** Parts in order; `formEnd` follows the last one. A piece is valid until the next one is requested. */
export async function* encodeParts(
  boundary: string,
  parts: Iterable<FormPart> | AsyncIterable<FormPart>,
): AsyncGenerator<Uint8Array> {
  for await (const { name, value, file } of parts) {
    if (typeof value === 'string') {
      yield encodeText(boundary, name, value)
      continue
    }
    yield Buffer.from(`--${boundary}\r\n${headOf(name, file)}\r\n\r\n`)
    if (value instanceof Uint8Array) yield value
    else yield* value.open()
    yield LINE_END
  }
}

/** One part that is a text. */
export const encodeText = (boundary: string, name: string, value: string): Uint8Array =>
  Buffer.from(`--${boundary}\r\n${headOf(name)}\r\n\r\n${value}\r\n`)

export const formEnd = (boundary: string): Uint8Array => Buffer.from(`--${boundary}--\r\n`)

const LINE_END = Buffer.from('\r\n')

function headOf(name: string, file?: FormPart['file']): string {
  const disposition = `Content-Disposition: form-data; name="${escaped(name)}"`
  if (!file) return disposition
  const { name: filename, contentType } = file
  return `${disposition}; filename="${escaped(filename)}"\r\nContent-Type: ${contentType.replaceAll(/[\r\n]/g, '')}`
}

const escaped = (text: string) =>
  text.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22').toWellFormed()
