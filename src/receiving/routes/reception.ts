/**
 * Mail for the domains of accounts, from the recipient to the rows (routes-inbound.md section 5):
 *
 * 1. `place`: a recipient is accepted if it is a mailing list, or some route of the account could want the mail. Each list
 *    has a transaction of its own, since the reply to a post is only about that list.
 * 2. `receive`: the mail is read, its origin is checked, a list judges it (list-posts.ts), and the routes of each recipient
 *    are evaluated on it.
 * 3. One transaction stores the message, its events, a delivery per address and a POST per URL to forward it to, and the
 *    expansion of the list.
 *
 * Nothing here sends a bounce: mail is refused in the dialogue, or it is taken.
 */
import { newId } from '../../base/ids.ts'
import { Forbidden } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import {
  type DroppedMessage,
  type ReadMail,
  type ReceivedMailStore,
  type ReceivedMessage,
  type ReceivedPost,
  readMail,
} from '../../mail/accept/received-mail.ts'
import { isFile, type MessageRecord } from '../../mail/record/record.ts'
import { StaleWrite } from '../../platform/store/store.ts'
import { type Chunk, scanChunks } from '../../protocols/message/mime-message.ts'
import { addressKey, bareAddress, type Mailbox } from '../../protocols/mime/address.ts'
import { MimeSyntaxError } from '../../protocols/mime/split.ts'
import type { SpamScore } from '../../protocols/scanners/spam-score.ts'
import type { AskVirus } from '../../sending/content-check/scanners.ts'
import { type Domain, refusesMail } from '../../sending/domains/domain.ts'
import type { SigningKeys } from '../../sending/domains/keys/signing-keys.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { ownerOf } from '../../sending/domains/names/name-owner.ts'
import type { List } from '../../sending/lists/list.ts'
import type { MailPlace, MailReader, WholeMail } from '../sessions/reception.ts'
import { Refusal } from '../sessions/replies.ts'
import type { ReceptionOpening } from '../sessions/session.ts'
import { type ForwardedCopies, mailKey } from './forward/forwarded-copies.ts'
import { authorDomains, lendsTo } from './forward/lent-names.ts'
import {
  keptFields,
  type ReceptionFacts,
  receivedField,
  type SessionFacts,
  traceOf,
} from './forward/received-fields.ts'
import type { Greylist } from './greylist.ts'
import { type ListPosts, NOT_ALLOWED, type PostVerdict, UNSURE } from './list-posts.ts'
import type { MailCheck, MailVerdict } from './mail-check.ts'
import { firstRouteFor, recipientCost } from './match/evaluate.ts'
import { PatternWork, TooMuchWork, type WorkTurns } from './match/pattern-work.ts'
import { type Plan, type PlanParts, planFor } from './match/plan.ts'
import type { SpamScorer } from './spam/scoring.ts'
import type { KnownRoutes } from './store.ts'

interface RouteReceptionParts
  extends Pick<PlanParts, 'posts' | 'recorder'>,
    Pick<Core, 'domains' | 'accounts' | 'clock' | 'log'> {
  known: KnownRoutes
  signingKeys: Pick<SigningKeys, 'active'>
  received: ReceivedMailStore
  check: MailCheck
  score: SpamScorer
  /** Null: none looks for viruses. */
  virus: AskVirus | null
  hostname: string
  headerPrefix: string
  headerPrefixAliases: readonly string[]
  acceptUnrouted: boolean
  lists: ListPosts
  /** Null: off. */
  greylist: Pick<Greylist, 'check'> | null
  copies: Pick<ForwardedCopies, 'claim'>
  turns: WorkTurns
}

const NOT_FOUND = '550 5.1.1 Recipient not found'

export function createRouteReception(parts: RouteReceptionParts): MailReader {
  return {
    open(opening) {
      const work = new PatternWork(parts.turns)
      let accepted = 0
      return {
        async place(mailbox) {
          const place = await placeOf(parts, mailbox, opening, work, accepted > 0)
          if (place !== null && place !== 'unwanted') accepted++
          return place
        },
        async receive(mail) {
          const [domainId = '', listId] = mail.owner.split(' ')
          const domain = await parts.domains.byId(domainId)
          if (!domain) throw new Refusal(NOT_FOUND)
          await checkOpen(parts, domain)
          const list = listId === undefined ? null : await parts.lists.byId(listId)
          return receive(parts, domain, list, mail, await read(mail))
        },
      }
    },
  }
}

async function placeOf(
  parts: RouteReceptionParts,
  mailbox: Mailbox,
  { remoteAddress, sender }: ReceptionOpening,
  work: PatternWork,
  isFurther: boolean,
): Promise<MailPlace | 'unwanted' | null> {
  const domain = await receivingDomain(parts.domains, mailbox.domain)
  if (!domain) return null
  if (domain.state === 'unverified') return 'unwanted'
  await checkOpen(parts, domain)
  const routes = await parts.known.of(domain.accountId)
  const list = await parts.lists.listOf(domain, mailbox)
  const recipient = bareAddress(mailbox)
  try {
    work.reserve(recipientCost(routes, recipient))
  } catch (error) {
    // Alone it may be within the bound.
    throw isFurther && error instanceof TooMuchWork
      ? new Refusal(TOO_MANY_RECIPIENTS)
      : tooCostly(parts, domain, error)
  }
  const isRouted = (await firstRouteFor(routes, recipient, true, work)) !== null
  if (list?.accessLevel === 'readonly' && !isRouted) throw new Refusal(NOT_ALLOWED)
  if (!list && !isRouted && !parts.acceptUnrouted) return 'unwanted'
  await parts.greylist?.check({ remoteAddress, sender, recipient: mailbox })
  return { owner: list ? `${domain.id} ${list.id}` : domain.id }
}

const TOO_MANY_RECIPIENTS = '452 4.5.3 Too many recipients'
const TOO_COSTLY = '451 4.3.5 The routes of the recipient need too much work, try again later'

/** The mail stays with its sender while the account changes its routes. */
function tooCostly({ log }: RouteReceptionParts, { name, accountId }: Domain, error: unknown): unknown {
  if (!(error instanceof TooMuchWork)) return error
  log.warn(
    { domain: name, account: accountId },
    'patterns of routes need too much work for a mail: it was deferred',
  )
  return new Refusal(TOO_COSTLY)
}

/** @throws Refusal while the domain or its account is disabled: the mail comes again */
async function checkOpen({ accounts }: RouteReceptionParts, domain: Domain): Promise<void> {
  const account = await accounts.byId(domain.accountId)
  if (refusesMail(domain) || account?.status !== 'open') throw new Refusal('450 4.2.1 Recipient is disabled')
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
  list: List | null,
  { raw, recipients, sender, remoteAddress, helo, protocol, requireTls }: WholeMail,
  mail: ReadMail,
): Promise<'stored' | 'dropped'> {
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
  const trace = traceOf(mail.headers, { hostname: parts.hostname, prefix: parts.headerPrefix })
  const posted = { headers: mail.headers, sender, author: verdict.author, ownHops: trace.ownHops }
  const post = list ? await parts.lists.judge(domain, list, posted) : null
  // Its recipients were reserved when they were accepted.
  const work = new PatternWork(parts.turns)
  await refuseEarly(post, routes, recipients, work)
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
  const dropped = { domain, mail, headers, envelopeSender: sender, remoteAddress, recipients }
  const virus = await virusIn(parts, raw, mail)
  if (virus !== null) return drop(parts, dropped, 'Message contains a virus', virus)
  if (spam?.isSpam && domain.spamAction === 'block')
    return drop(parts, dropped, 'Message is spam', `score ${Math.round(spam.score * 10) / 10}`)
  const plan = await planFor(parts, { routes, recipients, headers, trace, work }).catch((error: unknown) => {
    throw tooCostly(parts, domain, error)
  })
  if (post?.kind === 'dropped')
    parts.log.info(
      { list: list?.address, sender, remoteAddress, reason: post.reason },
      'post not distributed',
    )
  if (plan.recipients.length === 0 && post?.kind !== 'allowed')
    return unwanted(parts, domain, post, recipients.length)
  if (plan.forwards.length > 0) await refuseForged(parts, domain, mail, verdict)
  const accepted = post?.kind === 'allowed' ? post.post : null
  return store(parts, {
    domain,
    mail,
    headers,
    sender,
    remoteAddress,
    recipients,
    plan,
    post: accepted,
    verdict,
    // A bounce must not be lost for want of it (RFC 8689 §5).
    requireTls: requireTls === true && sender !== '',
  })
}

/** A post that the list refuses, and no route wants. @throws Refusal */
async function refuseEarly(
  post: PostVerdict | null,
  routes: Awaited<ReturnType<KnownRoutes['of']>>,
  recipients: readonly Mailbox[],
  work: PatternWork,
): Promise<void> {
  if (post?.kind !== 'refused') return
  // The client sends all of it again, so that the routes get it then.
  if (post.refusal.reply.startsWith('4')) throw post.refusal
  for (const mailbox of recipients) {
    if ((await firstRouteFor(routes, bareAddress(mailbox), true, work)) !== null) return
  }
  throw post.refusal
}

/** @throws Refusal if the forwarded copy would prove an author of another account who has not sent the mail */
async function refuseForged(
  { domains }: RouteReceptionParts,
  domain: Domain,
  { headers }: ReadMail,
  { author }: MailVerdict,
): Promise<void> {
  for (const name of authorDomains(headers)) {
    const isProven = author.isProven && author.domain === name
    if (isProven || !(await lendsTo(domains, domain, name))) continue
    throw new Refusal(author.isUnsure ? UNSURE : "550 5.7.1 The author's domain has not sent this mail")
  }
}

/** Null: the domain wants none, or there is none. */
async function spamScoreOf(
  { score }: RouteReceptionParts,
  domain: Domain,
  mail: Pick<WholeMail, 'raw' | 'recipients'> & Pick<ReadMail, 'headers'> & { session: SessionFacts },
  verdict: MailVerdict,
): Promise<SpamScore | null> {
  if (domain.spamAction === 'disabled') return null
  const { session, recipients } = mail
  const received = receivedField(session)
  return score({ ...session, ...mail, recipients: recipients.map(bareAddress), received }, verdict)
}

/** The name of a virus in the files of the mail; null: none was found, or none looks for any. */
async function virusIn({ virus }: RouteReceptionParts, raw: Chunk, { leaves }: ReadMail) {
  if (virus === null || !leaves.some((leaf) => isFile(leaf, true))) return null
  return (await virus(scanChunks([raw]), 'inbound'))?.name ?? null
}

/** The sender learns nothing; the account does, by an event (decision 85). */
async function drop(
  { received, log }: RouteReceptionParts,
  message: Omit<DroppedMessage, 'recipients'> & { recipients: readonly Mailbox[] },
  reason: string,
  description: string,
): Promise<'dropped'> {
  const { domain, remoteAddress } = message
  const recipients = message.recipients.map((mailbox) => ({ mailbox, routes: [] }))
  await received.reject({ ...message, recipients }, reason, description)
  log.info({ domain: domain.name, remoteAddress, reason, description }, 'received mail dropped')
  return 'dropped'
}

/** Headers were decisive, and no route wanted them, nor does a list. */
function unwanted(
  { acceptUnrouted, log }: RouteReceptionParts,
  domain: Domain,
  post: PostVerdict | null,
  recipients: number,
): 'dropped' {
  if (post?.kind === 'refused') throw post.refusal
  if (post?.kind === 'dropped') return 'dropped'
  if (!acceptUnrouted) throw new Refusal(NOT_FOUND)
  log.info({ domain: domain.name, recipients }, 'received mail dropped: no route wants it')
  return 'dropped'
}

async function store(
  parts: RouteReceptionParts,
  facts: {
    domain: Domain
    mail: ReadMail
    headers: ReturnType<typeof keptFields>
    sender: string
    remoteAddress: string
    recipients: readonly Mailbox[]
    plan: Plan
    post: ReceivedPost | null
    verdict: MailVerdict
    requireTls: boolean
  },
): Promise<'stored' | 'dropped'> {
  const { log } = parts
  const { requireTls, domain, mail, headers, sender, remoteAddress, plan, post, verdict } = facts
  const message: ReceivedMessage = {
    domain,
    mail,
    headers,
    envelopeSender: sender,
    remoteAddress,
    // All of a post are the list's address; the routes of each show in its event.
    recipients: post
      ? facts.recipients.map((mailbox) => routedAs(plan, mailbox) ?? { mailbox, routes: [] })
      : plan.recipients,
    forwards: plan.forwards,
    forwardFields: verdict.arcFields,
    post,
    requireTls,
  }
  const record = await storeOnce(parts, message, plan).catch((error: unknown) => {
    // A limit of the account, which may be raised: the sender keeps the mail.
    throw error instanceof Forbidden ? new Refusal(post ? LIST_IS_FULL : FORWARDING_IS_FULL) : error
  })
  if (record === null) {
    log.info({ list: post?.list.address, sender, remoteAddress }, 'post distributed already')
    return 'dropped'
  }
  log.info(
    {
      message: record.id,
      domain: domain.name,
      recipients: message.recipients.length,
      list: post?.list.address,
      forwards: plan.forwards.length,
      remoteAddress,
      spf: verdict.spf,
      dkim: verdict.dkim,
    },
    'mail received',
  )
  return 'stored'
}

const LIST_IS_FULL = '451 4.7.1 The list takes no posts now, try again later'
const FORWARDING_IS_FULL = '451 4.7.1 The message limit of the account is reached, try again later'
/** Each further try means that the same mail was stored in between. */
const TRIES_MAX = 10

/** Forwards the mail only where it has not been forwarded yet. @throws as ReceivedMailStore.store */
async function storeOnce(
  { received, copies, log }: RouteReceptionParts,
  message: ReceivedMessage,
  plan: Plan,
): Promise<MessageRecord | null> {
  const mail = plan.forwards.length > 0 ? await mailKey(message.domain.accountId, message.mail) : ''
  for (let tries = 1; ; tries++) {
    const { fresh, tooMany, statements } = await copies.claim(mail, plan.forwards)
    const skipped = plan.forwards.length - fresh.length - tooMany.length
    if (skipped > 0) log.info({ domain: message.domain.name, skipped }, 'mail forwarded there already')
    try {
      return await received.store({ ...message, forwards: fresh }, (about, record) => [
        ...statements,
        ...plan.statements(about, record, tooMany),
      ])
    } catch (error) {
      const isRepeated = error instanceof StaleWrite && statements.includes(error.statement)
      if (!isRepeated || tries === TRIES_MAX) throw error
    }
  }
}

const routedAs = (plan: Plan, mailbox: Mailbox) =>
  plan.recipients.find((one) => addressKey(one.mailbox) === addressKey(mailbox))

/** An RSA key, which every verifier knows. */
async function sealingKeyOf({ signingKeys }: RouteReceptionParts, domain: Domain) {
  const keys = await signingKeys.active(domain.dkimAuthority)
  return keys.find(({ algorithm }) => algorithm === 'rsa') ?? null
}

/**
 * The domain that receives mail for a host (routes-inbound.md section 5 rule 1): the host itself, else the nearest verified
 * domain above it, if that has `wildcard`. A name that somebody has claimed below it, and not proven, takes nothing from it.
 * Null: none.
 */
async function receivingDomain(domains: Pick<DomainDirectory, 'byName'>, host: string) {
  const owner = await ownerOf(domains, host)
  if (owner === null || owner.name === host || owner.wildcard) return owner
  return domains.byName(host)
}
