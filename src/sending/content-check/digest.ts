/** Names the content of a message, so that copies of one text are checked once. */
import { createHash } from 'node:crypto'
import type { RecipientVariables } from '../../mail/record/options.ts'
import type { MessageRecord, StoredBytes } from '../../mail/record/record.ts'
import { storedChunk } from '../../mail/record/record.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import { readChunks } from '../../protocols/message/mime-message.ts'

/** What readers see of the header, besides who gets the mail, and what the bytes of the body mean. */
const FIELDS: ReadonlySet<string> = new Set([
  ...['from', 'sender', 'reply-to', 'subject'],
  ...['content-type', 'content-transfer-encoding', 'content-disposition'],
])

/** Values of a copy that are no more than names, numbers and places: characters of each, and of all. */
const VALUE_MAX = 100
const VALUES_MAX = 400
const LINK = /https?:\/\/([^\s/"'<>]+)[^\s"'<>]*/giu
/** Names and addresses of hosts in a text: programs that show mail make links of them. */
const HOST = /(?:[\p{L}\p{N}_-]+\.)+(?:xn--[a-z0-9-]+|\p{L}{2,})|\d{1,3}(?:\.\d{1,3}){3}/giu

/**
 * The digest of a copy: that of its message, unless its variables say more than a name. The hosts that they link to count,
 * and not the rest of a link: a token for each recipient makes no other content.
 */
export function copyDigest(
  digest: string,
  { recipient, variables }: { recipient: string; variables: RecipientVariables | null },
): string {
  const own = variables === null ? '' : ownWords(recipient, Object.values(variables))
  return own === '' ? digest : createHash('sha256').update(`${digest} ${own}`).digest('hex').slice(0, 32)
}

function ownWords(recipient: string, values: readonly unknown[]): string {
  const words = values.map((value) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return text.replaceAll(recipient, '').replaceAll(LINK, '$1')
  })
  const all = words.join('\n')
  if (all.length > VALUES_MAX || words.some(({ length }) => length > VALUE_MAX)) return all
  return [...new Set(all.toLowerCase().match(HOST))].sort().join('\n')
}

/**
 * The same for messages of an account that differ only in recipients, dates and ids; 32 hexadecimal digits. Messages of two accounts never have the same: what one does, such as a
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
