/** A message as asked for: read and checked, not yet accepted. Every way in (HTTP parts, MIME, SMTP) ends here. */
import type { Chunk } from '../base/mime-message.ts'
import type { Mailbox } from '../mime/address.ts'

export interface Draft {
  from: readonly Mailbox[]
  to: readonly Mailbox[]
  cc: readonly Mailbox[]
  /** Who gets a copy: to, cc and bcc without doubles, the first place winning. */
  recipients: readonly Mailbox[]
  subject: string
  text: string | null
  html: string | null
  amp: string | null
  files: readonly DraftFile[]
  /** Custom headers in order; those that may stand once replace ours. */
  headers: readonly (readonly [name: string, value: string])[]
  userVariables: Record<string, unknown>
  tags: readonly string[]
  options: MessageOptions
}

export interface DraftFile {
  disposition: 'inline' | 'attachment'
  filename: string
  contentType: string
  /** Bytes, or a chunk that the blob store spooled. */
  chunk: Chunk
}

/** What a message sets for its own delivery; null leaves it to the domain. Stored with the message. */
export interface MessageOptions {
  dkim: boolean
  testMode: boolean
  requireTls: boolean | null
  skipVerification: boolean | null
}

export const DEFAULT_OPTIONS: MessageOptions = {
  dkim: true,
  testMode: false,
  requireTls: null,
  skipVerification: null,
}
