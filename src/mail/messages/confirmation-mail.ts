/**
 * The mail that asks whether an address wants a mailing list. It is mail of the account: sent from the list's address and
 * domain, signed, counted and suppressed as any other, without tracking.
 */
import type { Statement } from '../../platform/store/store.ts'
import { type Mailbox, parseMailbox } from '../../protocols/mime/address.ts'
import { type Domain, SEND_ALWAYS } from '../../sending/domains/domain.ts'
import { type AcceptParts, acceptMessage } from '../accept/accept.ts'
import { DEFAULT_OPTIONS } from '../record/options.ts'
import type { Draft } from '../request/draft.ts'

export interface AskingMail {
  /** The list's. */
  domain: Domain
  from: Mailbox
  to: string
  body:
    | { subject: string; text: string; html: string }
    | { template: string; variables: Record<string, unknown> }
}

/** Accepts the mail in one transaction with the statements. @throws as sending does, and StaleWrite when a statement does */
export type ConfirmationMail = (mail: AskingMail, statements: readonly Statement[]) => Promise<void>

export function createConfirmationMail(accept: AcceptParts): ConfirmationMail {
  return async ({ domain, from, to, body }, statements) => {
    const recipients = [parseMailbox(to)]
    const isBuiltIn = 'text' in body
    const draft: Draft = {
      ...{ from: [from], to: recipients, cc: [], recipients },
      subject: isBuiltIn ? body.subject : null,
      body: {
        ...{ kind: 'parts', amp: null, files: [] },
        ...(isBuiltIn ? { text: body.text, html: body.html } : { text: null, html: null }),
      },
      // RFC 3834 §5: no automatic replies. A list that is asked does not distribute it either.
      headers: [['Auto-Submitted', 'auto-generated']],
      ...{ userVariables: {}, tags: [], recipientVariables: null },
      template: isBuiltIn
        ? null
        : { name: body.template, version: null, text: true, variables: body.variables },
      options: {
        ...DEFAULT_OPTIONS,
        ...{ trackClicks: false, trackOpens: false, listUnsubscribe: false, sendWindow: SEND_ALWAYS },
      },
    }
    await acceptMessage(accept, draft, {
      ...{ domain, method: 'http', originatingIp: null, keyId: null },
      also: () => statements,
    })
  }
}
