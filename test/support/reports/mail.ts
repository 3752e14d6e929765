/** Parts of synthetic reports: the recipient, the failure, and the MIME structure. */

/** The mail that the report is about. */
export interface Subject {
  recipient: string
  /** Envelope sender that the receiver saw. */
  returnPath: string
  /** Header block of the mail as received, with CRLF, without the empty line. */
  header: string
}

export interface Fault {
  name: string
  status: string
  reply: number
  /** The server's text after the codes; `<R>` is the recipient. */
  words: string
  /** The address is added to the bounces. */
  hard: boolean
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'unknown',
    status: '5.1.1',
    reply: 550,
    words: '<R>: Recipient address rejected: User unknown in local table',
    hard: true,
  },
  { name: 'closed', status: '5.2.1', reply: 550, words: 'The account <R> has been disabled', hard: true },
  { name: 'full', status: '5.2.2', reply: 552, words: 'Mailbox of <R> is full, quota exceeded', hard: false },
  { name: 'spam', status: '5.7.1', reply: 554, words: 'Message rejected as spam (score 14.2)', hard: false },
  {
    name: 'large',
    status: '5.3.4',
    reply: 552,
    words: 'Message size exceeds the limit of this host',
    hard: false,
  },
  { name: 'nodns', status: '5.4.4', reply: 550, words: 'Host or domain name not found', hard: false },
]

export const wordsOf = (fault: Fault, subject: Subject) =>
  fault.words.replace('<R>', `<${subject.recipient}>`)
/** "550 5.1.1 words" */
export const replyOf = (fault: Fault, subject: Subject) =>
  `${fault.reply} ${fault.status} ${wordsOf(fault, subject)}`

/** A mail with CRLF; `head` are fields in addition to the usual ones, including a `From`. */
export function mail(head: readonly string[], body: string): string {
  const usual = ['Date: Fri, 20 Nov 2026 10:00:00 +0000', 'MIME-Version: 1.0']
  return `${[...head, ...usual].join('\n')}\n\n${body}`.replace(/\r?\n/g, '\r\n')
}

export const plain = (head: readonly string[], text: string) =>
  mail([...head, 'Content-Type: text/plain; charset=us-ascii'], text)

export interface Part {
  head: readonly string[]
  body: string
}

/** Each of nested multiparts needs its own. */
let boundaries = 0

export function multipart(head: readonly string[], type: string, parts: readonly Part[]): string {
  const boundary = `=_b7Zq.${++boundaries}/mx`
  const body = parts.map((part) => `--${boundary}\n${part.head.join('\n')}\n\n${part.body}\n`).join('')
  return mail([...head, `Content-Type: ${type};\n\tboundary="${boundary}"`], `${body}--${boundary}--\n`)
}

export const text = (body: string): Part => ({
  head: ['Content-Description: Notification', 'Content-Type: text/plain; charset=us-ascii'],
  body,
})
export const original = ({ header }: Subject): Part => ({
  head: ['Content-Description: Undelivered Message', 'Content-Type: message/rfc822'],
  body: `${header}\n\nYour parcel could not be delivered. User unknown? 550 5.1.1 no.\n`,
})
export const originalHeader = ({ header }: Subject): Part => ({
  head: ['Content-Type: text/rfc822-headers'],
  body: `${header}\n`,
})
export const fields = (body: string, type = 'message/delivery-status'): Part => ({
  head: ['Content-Description: Delivery report', `Content-Type: ${type}`],
  body,
})
