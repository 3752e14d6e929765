/** A message as requested: read and checked, not yet accepted. HTTP parts, MIME and SMTP all become a draft. */

import type { Chunk } from '../../protocols/message/mime-message.ts'
import type { Mailbox } from '../../protocols/mime/address.ts'
import type { MessageOptions, RecipientVariables } from '../record/options.ts'
import type { MimeSource } from './mime-source.ts'
import type { TemplateRequest } from './options.ts'

export interface Draft {
  /** Header From; empty if the template may give one. */
  from: readonly Mailbox[]
  to: readonly Mailbox[]
  cc: readonly Mailbox[]
  /** One per copy: to, cc and bcc without duplicates; the first occurrence counts. */
  recipients: readonly Mailbox[]
  /** Null: the template gives it. */
  subject: string | null
  body: DraftBody
  /** Custom headers in order; fields that may occur once replace ours. */
  headers: readonly (readonly [name: string, value: string])[]
  userVariables: Record<string, unknown>
  tags: readonly string[]
  template: TemplateRequest | null
  /** Variables by address key (`addressKey`). Not null: batch mode, every recipient gets a copy of its own. */
  recipientVariables: ReadonlyMap<string, RecipientVariables> | null
  options: MessageOptions
  /** Names of header fields under the service's prefix that are no options; absent: none. */
  unknownHeaders?: readonly string[]
}

export type DraftBody =
  | {
      kind: 'parts'
      text: string | null
      html: string | null
      amp: string | null
      files: readonly DraftFile[]
    }
  | { kind: 'mime'; source: MimeSource }

export interface DraftFile {
  disposition: 'inline' | 'attachment'
  filename: string
  /** With its parameters, as `text/calendar; method=REQUEST`. */
  contentType: string
  /** Bytes, or a chunk that the blob store spooled. */
  chunk: Chunk
}
