/** The applications: how to start them, where they take mail, and what they must have found in a sample. */
import type { Paths } from './posting.ts'
import type { Sample } from './samples.ts'

export interface Application {
  /** Gets the address, the signing key and an empty folder as further arguments; runs in this folder. */
  command: string[]
  paths: Partial<Record<Sample['to'], string>> & Paths
  /** The part of what it read that samples tell. */
  found(read: Record<string, unknown>): unknown
  expected(sample: Sample): unknown
}

interface ReadFile {
  name: string
  type: string
  cid?: string | null
  base64: string
}

/** Line ends are the transport's. */
const lines = (text: unknown) => (typeof text === 'string' ? text.replaceAll('\r\n', '\n') : text)
const file = ({ name, type, base64 }: ReadFile) => ({
  name,
  type,
  content: Buffer.from(base64, 'base64').toString('latin1'),
})

export const APPLICATIONS: Record<string, Application> = {
  anymail: {
    command: ['/usr/bin/python3', 'anymail/application.py'],
    paths: {
      parsed: '/anymail/mailgun/inbound/',
      raw: '/anymail/mailgun/inbound_mime/',
      notice: '/anymail/mailgun/inbound/',
    },
    found: (read) => ({
      sender: read['envelope_sender'],
      subject: read['subject'],
      text: lines(read['text']),
      html: lines(read['html']),
      files: (read['attachments'] as ReadFile[]).map(file),
      inline: Object.entries(read['inline_attachments'] as Record<string, ReadFile>).map(([cid, one]) => ({
        ...{ cid, type: one.type, content: file(one).content },
      })),
      spam: read['spam_detected'],
    }),
    expected: ({ from, expected }) => ({ sender: from, inline: [], spam: false, ...expected }),
  },
  'action-mailbox': {
    command: ['ruby', 'action-mailbox/application.rb'],
    paths: { raw: '/rails/action_mailbox/mailgun/inbound_emails/mime' },
    found: (read) => {
      const files = read['attachments'] as ReadFile[]
      return {
        subject: read['subject'],
        text: lines(read['text']),
        html: lines(read['html']),
        files: files.filter(({ cid }) => cid === null).map(file),
        inline: files.flatMap((one) =>
          one.cid ? [{ cid: one.cid, type: one.type, content: file(one).content }] : [],
        ),
      }
    },
    expected: ({ expected }) => ({ inline: [], ...expected }),
  },
}
