/** The stored message as `GET /v3/domains/{domain}/messages/{key}` shows it (messages.md, StoredMessage). */
import { messageBytes } from '../base/mime-message.ts'
import { htmlToText } from '../mime/html-text.ts'
import { splitMessage } from '../mime/split.ts'
import { stripReply, stripReplyHtml } from '../mime/stripped.ts'
import type { BlobStore } from '../store/blobs.ts'
import { buildMessage, needsUtf8 } from './build.ts'
import type { MessageRecord, StoredFile } from './content.ts'

const utf8Of = ({ summary }: MessageRecord) => needsUtf8([summary.sender, ...summary.recipients])

/** The message as composed, without what delivery adds for one recipient. */
const composed = (record: MessageRecord, blobs: BlobStore) =>
  buildMessage(record.content, [], { seed: record.id, utf8: utf8Of(record) }, blobs)

/** All nineteen fields and the further ones; a field that has nothing is an empty string. `url`: of the message itself. */
export async function storedMessage(
  record: MessageRecord,
  url: string,
  headerPrefix: string,
  blobs: BlobStore,
): Promise<Record<string, unknown>> {
  const { summary, content } = record
  const message = await composed(record, blobs)
  const head = Buffer.from(`${message.headers.join('\r\n')}\r\n\r\n`)
  const headers = splitMessage(head).headers.map(({ name, value }) => [name, value] as const)
  const header = (name: string) => headers.find(([other]) => other.toLowerCase() === name)?.[1] ?? ''
  const plain = content.text ?? (content.html === null ? '' : htmlToText(content.html))
  const html = content.html ?? ''
  const stripped = stripReply(plain)
  return {
    'Content-Transfer-Encoding': header('content-transfer-encoding'),
    'Content-Type': header('content-type'),
    From: summary.from,
    'Message-Id': `<${record.messageId}>`,
    'Mime-Version': header('mime-version'),
    Subject: summary.subject,
    To: summary.to,
    [`${headerPrefix}Tag`]: summary.tags.join(', '),
    [`${headerPrefix}Template-Name`]: summary.template?.name ?? '',
    [`${headerPrefix}Template-Variables`]: '',
    sender: summary.sender,
    from: summary.from,
    subject: summary.subject,
    recipients: summary.recipients.join(', '),
    'body-html': html,
    'body-plain': plain,
    'stripped-html': html === '' ? '' : stripReplyHtml(html),
    'stripped-text': stripped.text,
    'stripped-signature': stripped.signature,
    'message-headers': headers,
    attachments: numbered(content.files)
      .filter(({ file }) => file.disposition === 'attachment')
      .map(({ file, n }) => describe(file, n, url)),
    'content-id-map': Object.fromEntries(
      numbered(content.files)
        .filter(({ file }) => file.disposition === 'inline')
        .map(({ file, n }) => [`<${file.filename}>`, describe(file, n, url)]),
    ),
  }
}

const numbered = (files: readonly StoredFile[]) => files.map((file, n) => ({ file, n }))

function describe(file: StoredFile, n: number, url: string): Record<string, unknown> {
  const { filename, contentType, sizeBytes } = file
  return { name: filename, 'content-type': contentType, size: sizeBytes, url: `${url}/attachments/${n}` }
}

/** The answer to `Accept: message/rfc2822`. */
export async function storedMime(record: MessageRecord, blobs: BlobStore): Promise<Record<string, unknown>> {
  const { summary } = record
  return {
    recipients: summary.recipients.join(', '),
    recipient: summary.recipients[0] ?? '',
    sender: summary.sender,
    from: summary.from,
    subject: summary.subject,
    'body-mime': (await messageBytes(await composed(record, blobs))).toString('utf8'),
  }
}
