/** Names the content of a message, so that copies of one text are checked once. */
import { createHash } from 'node:crypto'
import type { MessageRecord, StoredBytes } from '../../mail/record/record.ts'
import { storedChunk } from '../../mail/record/record.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import { readChunks } from '../../protocols/message/mime-message.ts'

/** What readers see of the header, besides who gets the mail, and what the bytes of the body mean. */
const FIELDS: ReadonlySet<string> = new Set([
  ...['from', 'sender', 'reply-to', 'subject'],
  ...['content-type', 'content-transfer-encoding', 'content-disposition'],
])

/**
 * The same for messages of an account that differ only in recipients, dates and ids; 32 hexadecimal digits. Copies of a
 * batch have one, whatever their variables. Messages of two accounts never have the same: what one does, such as a
 * release, must not count for the other.
 */
export async function digestOf(
  {
    accountId,
    domainId,
    content,
    summary,
  }: Pick<MessageRecord, 'accountId' | 'domainId' | 'content' | 'summary'>,
  blobs: BlobStore,
): Promise<string> {
  const hash = createHash('sha256')
  const { template } = content
  const fields = content.headers.flatMap(([name, value]) =>
    FIELDS.has(name.toLowerCase()) ? [[name.toLowerCase(), value]] : [],
  )
  const add = (value: unknown) => hash.update(`${JSON.stringify(value)}\n`)
  add([accountId, domainId, content.kind, fields, template && [template, summary.userVariables]])
  const addBytes = async (bytes: StoredBytes, sizeBytes: number) => {
    for await (const piece of readChunks([await storedChunk(bytes, sizeBytes, blobs)])) hash.update(piece)
  }
  if (content.kind === 'mime') await addBytes(content.body, content.body.sizeBytes)
  else {
    add([content.text, content.html, content.amp])
    for (const { filename, contentType, sizeBytes, bytes } of content.files) {
      add([filename, contentType, sizeBytes])
      await addBytes(bytes, sizeBytes)
    }
  }
  return hash.digest('hex').slice(0, 32)
}
