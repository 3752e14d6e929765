/**
 * Every fact that accepting a message needs, loaded in one step as plain data: the decision (decide.ts) looks nothing up.
 * Most facts are in memory. The others are loaded only for drafts that need them: tags that the domain has not used yet,
 * recipients at domains with lists, other domains in From, recipients of a sandbox domain, a template, a secondary key, an
 * archive, and for delivery at each recipient's own time their habits.
 */

import { allKnown, type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { type AccountDirectory, maySend } from '../../people/accounts/account-directory.ts'
import type { MessageLimits } from '../../people/message-limits/limits.ts'
import type { SandboxGate } from '../../people/sandbox/gate.ts'
import { type HttpClient, storedUrlFault } from '../../platform/posts/http-client.ts'
import { bareAddress, type Mailbox } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import type { Sources } from '../../sending/ips/source-addresses.ts'
import type { ListDomains } from '../../sending/lists/list-domains.ts'
import type { EngineRelays } from '../../sending/relays/engine-relays.ts'
import type { TemplateService } from '../../sending/templates/service.ts'
import type { Habits } from '../../watching/events/habits.ts'
import { ALL_KNOWN, type KnownTags, type TagFacts } from '../../watching/tags/known-tags.ts'
import type { SecondaryKeys } from '../compose/secondary-keys.ts'
import { foreignDomain } from '../record/authors.ts'
import type { ChosenTemplate } from '../record/record.ts'
import type { Draft } from '../request/draft.ts'
import type { TemplateRequest } from '../request/options.ts'
import type { QueueLimits } from '../stored/queue-limits.ts'
import { bestTimes } from './timing.ts'

export interface SendFacts {
  /** The sending domain as it is now: reading a large request takes minutes. */
  domain: Domain
  /** False: the account of the domain is disabled, closed, or has no right to send. */
  accountMaySend: boolean
  /** Unverified domains may send (capture mode). */
  allowUnverified: boolean
  /** Unix milliseconds until which a queue of the domain is disabled; 0: neither is. */
  queueDisabledUntil: number
  /** The recipients would pass the monthly limit of the account. */
  limitReached: boolean
  /** A domain in From that belongs to another account; null: none does. */
  foreignAuthor: string | null
  /** False: a sandbox domain may not send to one of the recipients. */
  recipientsAllowed: boolean
  /** False: the requested address is not the account's. */
  sendingIpAllowed: boolean
  /** False: the requested pool does not exist. */
  poolExists: boolean
  /** False: the requested relay does not exist, or is not offered to the account. */
  relayAllowed: boolean
  /** False: the requested secondary key does not exist. */
  secondaryKeyExists: boolean
  /** False: the requested archive may not be called. */
  archiveAllowed: boolean
  /** The version to send with, or why there is none; null: the message has no template. */
  template: ChosenTemplate | BadRequest | null
  tags: TagFacts
  /** Address keys of the recipients that are mailing lists of the account. */
  lists: ReadonlySet<string>
  /** Per address key when the copy is due; all others are due at the message's own time. */
  bestTimes: ReadonlyMap<string, number>
}

export interface SendFactsParts {
  accounts: Pick<AccountDirectory, 'byId'>
  domains: Pick<DomainDirectory, 'byName'>
  allowUnverified: boolean
  queueLimits: Pick<QueueLimits, 'disabledUntil'>
  limits: Pick<MessageLimits, 'refuses'>
  sandbox: SandboxGate
  sources: Pick<Sources, 'mayUse' | 'hasPool'>
  relays: Pick<EngineRelays, 'mayAsk'>
  secondaryKeys: Pick<SecondaryKeys, 'find'>
  templates: Pick<TemplateService, 'choose'>
  tags: Pick<KnownTags, 'known'>
  listDomains: Pick<ListDomains, 'get'>
  lists: {
    /** The address keys among the recipients that are lists of the account. */
    listsAmong(accountId: string, recipients: readonly Mailbox[]): Promise<ReadonlySet<string>>
  }
  habits: Habits
  httpClient: Pick<HttpClient, 'fault'>
}

/** @throws NotFound when the domain was deleted meanwhile; the error of a lookup that fails */
export function loadFacts(
  parts: SendFactsParts,
  draft: Draft,
  domain: Domain,
  now: number,
): MaybePromise<SendFacts> {
  const { options, template, recipients } = draft
  const { sendingIp, sendingIpPool, relay = null, secondaryDkim, archiveTo } = options
  const start = Math.max(options.deliveryTime ?? 0, now)
  const loaded = allKnown([
    currentDomain(parts.domains, domain),
    parts.accounts.byId(domain.accountId),
    parts.queueLimits.disabledUntil(domain.id),
    parts.limits.refuses(domain.accountId, recipients.length),
    foreignDomain(parts.domains, domain, draft.from),
    domain.type !== 'sandbox' || parts.sandbox.mayReceive(domain, recipients),
    secondaryDkim === null || keyExists(parts.secondaryKeys, domain.accountId, secondaryDkim),
    template && chosenTemplate(parts.templates, domain, template),
    draft.tags.length === 0 ? ALL_KNOWN : parts.tags.known(domain, draft.tags),
    listsAmong(parts, domain.accountId, recipients),
    options.optimizeHours === null && options.localMinute === null
      ? NO_TIMES
      : bestTimes(parts.habits, domain, recipients.map(bareAddress), options, start),
    archiveTo === null || mayArchive(parts.httpClient, archiveTo),
  ])
  return whenKnown(
    loaded,
    ([
      current,
      account,
      queueDisabledUntil,
      limitReached,
      foreign,
      allowed,
      keyFound,
      chosen,
      tags,
      lists,
      times,
      archiveAllowed,
    ]) => ({
      domain: current,
      accountMaySend: maySend(account),
      allowUnverified: parts.allowUnverified,
      queueDisabledUntil,
      limitReached,
      foreignAuthor: foreign,
      recipientsAllowed: allowed,
      sendingIpAllowed: sendingIp === null || parts.sources.mayUse(domain.accountId, sendingIp),
      poolExists: sendingIpPool === null || parts.sources.hasPool(domain.accountId, sendingIpPool),
      relayAllowed: relay === null || parts.relays.mayAsk(domain.accountId, relay),
      secondaryKeyExists: keyFound,
      archiveAllowed,
      template: chosen,
      tags,
      lists,
      bestTimes: times,
    }),
  )
}

const NO_TIMES: ReadonlyMap<string, number> = new Map()
const NO_LISTS: ReadonlySet<string> = new Set()

/** Most accounts have no lists, or not at the domains of a message's recipients. */
const listsAmong = (
  { listDomains, lists }: SendFactsParts,
  accountId: string,
  recipients: readonly Mailbox[],
): MaybePromise<ReadonlySet<string>> =>
  whenKnown(listDomains.get(accountId), (names) =>
    recipients.some(({ domain }) => names.has(domain))
      ? lists.listsAmong(
          accountId,
          recipients.filter(({ domain }) => names.has(domain)),
        )
      : NO_LISTS,
  )

const mayArchive = async (client: SendFactsParts['httpClient'], url: string): Promise<boolean> =>
  (await storedUrlFault(client, url)) === null

const currentDomain = (domains: SendFactsParts['domains'], { id, name }: Domain): MaybePromise<Domain> =>
  whenKnown(domains.byName(name), (current) => {
    if (current?.id !== id) throw new NotFound(`Domain not found: ${name}`)
    return current
  })

const keyExists = async (
  keys: SendFactsParts['secondaryKeys'],
  accountId: string,
  name: Parameters<SecondaryKeys['find']>[1],
): Promise<boolean> => (await keys.find(accountId, name)) !== null

/** That there is no such template is a fact too: an earlier check may reject the message for another reason. */
async function chosenTemplate(
  templates: SendFactsParts['templates'],
  domain: Domain,
  { name, version }: TemplateRequest,
): Promise<ChosenTemplate | BadRequest> {
  try {
    const found = await templates.choose(domain.accountId, domain.name, name, version ?? undefined)
    const { tag, content, headers } = found.version
    return { name: found.templateName, version: tag, source: content, headers }
  } catch (error) {
    if (error instanceof BadRequest) return error
    throw error
  }
}
