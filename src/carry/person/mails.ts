/** Mails of the person as files: as they were sent to them, received from them, or captured. */
import type { AcceptParts } from '../../mail/accept/accept.ts'
import { targetOf } from '../../mail/compose/prepare.ts'
import { storedCopy } from '../../mail/messages/stored-message.ts'
import { messageSize, scanMessage } from '../../protocols/message/mime-message.ts'
import type { MessageSummary } from '../../watching/events/event.ts'
import type { ArchiveFile } from './archive.ts'
import { blobOf } from './content.ts'
import { type FateParts, isOwnMail } from './fates.ts'
import type { Row } from './walk.ts'

type MailParts = Pick<FateParts, 'store' | 'blobs' | 'person'> & { accept: AcceptParts }

const nameOf = (id: unknown) => `mails/${String(id).replace(/[^\w-]/g, '')}.eml`

/** Empty: mail between others that only mentions the person, or it cannot be made any more. */
export async function mailsOf(parts: MailParts, table: string, row: Row): Promise<ArchiveFile[]> {
  if (table === 'messages') return sentMail(parts, row)
  if (table !== 'inbox') return []
  const name = nameOf(row['id'])
  if (row['raw']) {
    const raw = Buffer.from(row['raw'] as Uint8Array)
    return [{ name, sizeBytes: raw.byteLength, content: raw }]
  }
  // Read when the piece is written: a portion has many.
  const blob = await blobOf(parts.blobs, String(row['raw_blob']))
  return blob ? [{ name, sizeBytes: blob.sizeBytes, content: blob.open() }] : []
}

async function sentMail({ store, person, accept }: MailParts, row: Row): Promise<ArchiveFile[]> {
  const summary = JSON.parse(String(row['summary_json'])) as MessageSummary
  const isTheirs = isOwnMail(String(row['summary_json']), person)
  if (!isTheirs && !summary.recipients.some(person.is)) return []
  const record = await accept.records.byId(String(row['id']))
  const domain = await accept.domains.byId(String(row['domain_id']))
  if (!record || !domain) return []
  const deliveries = await store.db
    .selectFrom('deliveries')
    .selectAll()
    .where('message_pk', '=', record.id)
    .execute()
  // Of a batch each recipient has a copy of their own.
  const own = record.content.batch ? deliveries.find(({ recipient }) => person.is(recipient)) : undefined
  if (record.content.batch && !own) return []
  const whole = { delivery: null, recipient: null, variables: null, list: null }
  const target = own ? { ...targetOf(own, () => Buffer.alloc(8)), delivery: null } : whole
  try {
    const { message } = await storedCopy(accept, { record, domain, target, recipients: [person.key] })
    return [{ name: nameOf(record.id), sizeBytes: messageSize(message), content: scanMessage(message) }]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return []
  }
}
