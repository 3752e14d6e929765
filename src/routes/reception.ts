/**
 * Mail for the domains of accounts, from the recipient to the rows (routes-inbound.md section 5):
 *
 * 1. `place`: a recipient is accepted if some route of the account could want the mail.
 * 2. `receive`: the mail is read, its origin is checked, and the routes of each recipient are evaluated on it.
 * 3. One transaction stores the message, its events, a delivery per address and a POST per URL to forward it to.
 *
 * Nothing here sends a bounce: mail is refused in the dialogue, or it is taken.
 */
import type { Logger } from 'pino'
import type { AccountDirectory } from '../accounts/account-directory.ts'
import type { Clock } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { Domain } from '../domains/domain.ts'
import type { SigningKeys } from '../domains/keys/signing-keys.ts'
import type { MailReader, WholeMail } from '../inbound/reception.ts'
import { Refusal } from '../inbound/replies.ts'
import { type ReadMail, type ReceivedMail, readMail } from '../messages/received/received-mail.ts'
import { bareAddress } from '../mime/address.ts'
import { MimeSyntaxError } from '../mime/split.ts'
import { firstRouteFor } from './evaluate.ts'
import type { Greylist } from './greylist.ts'
import type { MailCheck, MailVerdict } from './mail-check.ts'
import { type Plan, type PlanParts, planFor } from './plan.ts'
import {
  keptFields,
  type ReceptionFacts,
  receivedField,
  type SessionFacts,
  traceOf,
} from './received-fields.ts'
import { receivingDomain } from './receiving-domain.ts'
import type { SpamScore, SpamScorer } from './spam/scoring.ts'
import type { KnownRoutes } from './store.ts'

export interface RouteReceptionParts extends Pick<PlanParts, 'posts' | 'recorder'> {
  known: KnownRoutes
  domains: DomainDirectory
  accounts: AccountDirectory
  signingKeys: Pick<SigningKeys, 'active'>
  received: ReceivedMail
  check: MailCheck
  score: SpamScorer
  clock: Clock
  log: Logger
  hostname: string
  headerPrefix: string
  headerPrefixAliases: readonly string[]
  acceptUnrouted: boolean
  /** Null: off. */
  greylist: Pick<Greylist, 'check'> | null
}

const NOT_FOUND = '550 5.1.1 Recipient not found'

export function createRouteReception(parts: RouteReceptionParts): MailReader {
  const { known, domains } = parts
  return {
    async place(mailbox, { remoteAddress, sender }) {
      const domain = await receivingDomain(domains, mailbox.domain)
      if (!domain) return null
      if (domain.state === 'unverified') return 'unwanted'
      await checkOpen(parts, domain)
      const routes = await known.of(domain.accountId)
      const wanted =
        parts.acceptUnrouted || (await firstRouteFor(routes, bareAddress(mailbox), true)) !== null
      if (!wanted) return 'unwanted'
      await parts.greylist?.check({ remoteAddress, sender, recipient: mailbox })
      return { owner: domain.id }
    },
    async receive(mail) {
      const domain = await domains.byId(mail.owner)
      if (!domain) throw new Refusal(NOT_FOUND)
      await checkOpen(parts, domain)
      await receive(parts, domain, mail, await read(mail))
    },
  }
}

/** @throws Refusal while the domain or its account is disabled: the mail comes again */
async function checkOpen({ accounts }: RouteReceptionParts, domain: Domain): Promise<void> {
  const account = await accounts.byId(domain.accountId)
  if (domain.state === 'disabled' || account?.status !== 'open')
    throw new Refusal('450 4.2.1 Recipient is disabled')
}

async function read({ raw }: WholeMail): Promise<ReadMail> {
  try {
    return await readMail(raw)
  } catch (error) {
    if (!(error instanceof MimeSyntaxError)) throw error
    throw new Refusal('554 5.6.0 cannot parse message')
  }
}

async function receive(
  parts: RouteReceptionParts,
  domain: Domain,
  { raw, recipients, sender, remoteAddress, helo, protocol }: WholeMail,
  mail: ReadMail,
): Promise<void> {
  const now = parts.clock.now()
  const routes = await parts.known.of(domain.accountId)
  const forwards = routes.some(({ actions }) =>
    actions.some((action) => action.kind === 'forward' && action.to.some(({ kind }) => kind === 'address')),
  )
  const verdict = await parts.check({
    chunk: raw,
    headers: mail.headers,
    sender,
    remoteAddress,
    helo,
    sealingKey: forwards ? await sealingKeyOf(parts, domain) : null,
  })
  const session: SessionFacts = {
    sender,
    remoteAddress,
    helo,
    protocol,
    id: newId(now),
    at: new Date(now),
    hostname: parts.hostname,
  }
  const spam = await spamScoreOf(parts, domain, { raw, headers: mail.headers, recipients, session }, verdict)
  const facts: ReceptionFacts = {
    ...session,
    prefix: parts.headerPrefix,
    prefixAliases: parts.headerPrefixAliases,
    tellsChecks: domain.spamAction !== 'disabled',
    spam,
  }
  const headers = keptFields(mail.headers, facts, verdict)
  const trace = traceOf(mail.headers, facts)
  const plan = await planFor(parts, { domain, routes, recipients, headers, trace })
  if (plan.recipients.length === 0) return unrouted(parts, domain, recipients.length)
  await store(parts, { domain, mail, headers, sender, remoteAddress, plan, verdict })
}

/** Null: the domain wants none, or there is none. @throws Refusal of spam, if the domain wants that */
async function spamScoreOf(
  { score, log }: RouteReceptionParts,
  domain: Domain,
  mail: Pick<WholeMail, 'raw' | 'recipients'> & Pick<ReadMail, 'headers'> & { session: SessionFacts },
  verdict: MailVerdict,
): Promise<SpamScore | null> {
  if (domain.spamAction === 'disabled') return null
  const { session, recipients } = mail
  const received = receivedField(session)
  const found = await score(
    { ...session, ...mail, recipients: recipients.map(bareAddress), received },
    verdict,
  )
  if (!found?.isSpam || domain.spamAction !== 'block') return found
  const { remoteAddress } = session
  log.info({ domain: domain.name, remoteAddress, score: found.score }, 'received mail refused as spam')
  throw new Refusal('550 5.7.1 Message refused as spam')
}

/** Headers were decisive, and no route wanted them. */
function unrouted({ acceptUnrouted, log }: RouteReceptionParts, domain: Domain, recipients: number): void {
  if (!acceptUnrouted) throw new Refusal(NOT_FOUND)
  log.info({ domain: domain.name, recipients }, 'received mail dropped: no route wants it')
}

async function store(
  { received, log }: RouteReceptionParts,
  facts: {
    domain: Domain
    mail: ReadMail
    headers: ReturnType<typeof keptFields>
    sender: string
    remoteAddress: string
    plan: Plan
    verdict: MailVerdict
  },
): Promise<void> {
  const { domain, mail, headers, sender, remoteAddress, plan, verdict } = facts
  const record = await received.store(
    {
      domain,
      mail,
      headers,
      envelopeSender: sender,
      remoteAddress,
      recipients: plan.recipients,
      forwards: plan.forwards,
      forwardFields: verdict.arcFields,
    },
    plan.statements,
  )
  log.info(
    {
      message: record.id,
      domain: domain.name,
      recipients: plan.recipients.length,
      forwards: plan.forwards.length,
      remoteAddress,
      spf: verdict.spf,
      dkim: verdict.dkim,
    },
    'mail received',
  )
}

/** An RSA key, which every verifier knows. */
async function sealingKeyOf({ signingKeys }: RouteReceptionParts, domain: Domain) {
  const keys = await signingKeys.active(domain.dkimAuthority)
  return keys.find(({ algorithm }) => algorithm === 'rsa') ?? null
}
