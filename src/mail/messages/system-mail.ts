/**
 * Mail of the service itself, such as invitations. It is accepted like any other message, in one transaction with the rows
 * that it is about, and is sent from a domain of the first account.
 *
 * It belongs to no account: callers who may read the account's messages and events must not see its content, and its
 * links must be neither tracked nor archived (decision 59).
 */

import { Unavailable } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import type { SystemMail } from '../../people/users/mails.ts'
import { SYSTEM_ACCOUNT_ID } from '../../platform/store/account-rows.ts'
import type { Statement } from '../../platform/store/store.ts'
import { parseMailbox } from '../../protocols/mime/address.ts'
import { type Domain, SEND_ALWAYS } from '../../sending/domains/domain.ts'
import { type AcceptParts, acceptMessage } from '../accept/accept.ts'
import { DEFAULT_OPTIONS } from '../record/options.ts'
import type { Draft } from '../request/draft.ts'
import { readMimeSource } from '../request/mime-source.ts'

const FROM_NAME = 'Sendwright'
const FROM_LOCAL = 'no-reply'

type Senders = Pick<Core, 'store' | 'domains' | 'firstAccountId'>

export function createSystemMail(core: Senders, accept: AcceptParts): SystemMail {
  return async (mail, statements) => {
    const domain = await senderOf(core)
    await acceptMessage(accept, draftOf(mail, domain.name), {
      domain: { ...domain, accountId: SYSTEM_ACCOUNT_ID },
      method: 'http',
      originatingIp: null,
      keyId: null,
      also: () => statements,
    })
  }
}

/**
 * The same for a report to others, a whole MIME message. `from`: an address in a domain of the first account; null: the
 * address of the mail above. `write` gets the author and the recipient. @throws as SystemMail
 */
export type ReportMail = (
  report: {
    to: string
    from: string | null
    write(from: string, to: string): Uint8Array
    /** Delivered although the receiver's policies on TLS cannot be met (RFC 8460 §5.3). */
    isTlsReport: boolean
  },
  statements: readonly Statement[],
) => Promise<void>

export function createReportMail(core: Senders, accept: AcceptParts): ReportMail {
  return async ({ to, from: wanted, write, isTlsReport }, statements) => {
    const domain = wanted === null ? await senderOf(core) : await ownDomainOf(core, wanted)
    const from = wanted ?? `${FROM_LOCAL}@${domain.name}`
    const { source } = await readMimeSource(write(from, to), [])
    const recipients = [parseMailbox(to)]
    const draft: Draft = {
      ...{ from: [parseMailbox(from)], to: [], cc: [], recipients, subject: null },
      body: { kind: 'mime', source },
      ...{ headers: [], userVariables: {}, tags: [], template: null, recipientVariables: null },
      options: {
        ...DEFAULT_OPTIONS,
        ...{ trackClicks: false, trackOpens: false, sendWindow: SEND_ALWAYS },
        ...(isTlsReport && { isTlsReport }),
      },
    }
    await acceptMessage(accept, draft, {
      domain: { ...domain, accountId: SYSTEM_ACCOUNT_ID },
      method: 'http',
      originatingIp: null,
      keyId: null,
      also: () => statements,
    })
  }
}

/** The domain of an address, which signs in its name. @throws Unavailable unless the first account may send from it */
async function ownDomainOf({ domains, firstAccountId }: Senders, address: string): Promise<Domain> {
  const domain = await domains.byName(parseMailbox(address).domain)
  if (domain?.accountId !== firstAccountId || domain.state !== 'active' || !domain.verified)
    throw new Unavailable()
  return domain
}

/** The oldest verified domain of the first account, else its sandbox domain. @throws Unavailable */
async function senderOf({ store, domains, firstAccountId }: Senders): Promise<Domain> {
  const row = await store.db
    .selectFrom('domains')
    .select('id')
    .where('account_id', '=', firstAccountId)
    .where((eb) => eb.or([eb('verified', '=', 1), eb('type', '=', 'sandbox')]))
    .where('state', '=', 'active')
    .orderBy((eb) => eb.case().when('type', '=', 'sandbox').then(1).else(0).end())
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  const domain = row && (await domains.byId(row.id))
  if (!domain) throw new Unavailable()
  return domain
}

function draftOf({ to, subject, text }: Parameters<SystemMail>[0], domainName: string): Draft {
  const recipients = [to].flat().map((address) => parseMailbox(address))
  return {
    from: [{ name: FROM_NAME, local: FROM_LOCAL, domain: domainName }],
    to: recipients,
    cc: [],
    recipients,
    subject,
    body: { kind: 'parts', text, html: null, amp: null, files: [] },
    // RFC 3834 §5: no automatic replies, such as vacation notices.
    headers: [['Auto-Submitted', 'auto-generated']],
    userVariables: {},
    tags: [],
    template: null,
    recipientVariables: null,
    options: {
      ...DEFAULT_OPTIONS,
      ...{ trackClicks: false, trackOpens: false, listUnsubscribe: false, sendWindow: SEND_ALWAYS },
    },
  }
}
