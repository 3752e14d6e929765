/**
 * What sending needs from other areas, as interfaces; the composition root passes the parts in. Stand-ins that do
 * nothing serve where an area is left out.
 */
import type { MaybePromise } from '../../base/flow/cache.ts'
import type { Statement } from '../../platform/store/store.ts'
import type { Mailbox } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { UnsubscribeVariable } from '../record/variables.ts'
import type { MessageOptions, TemplateRequest } from '../request/options.ts'

/** A template version as fixed at acceptance: later changes do not reach mail already accepted. */
export interface ChosenTemplate {
  name: string
  /** Version tag. */
  version: string
  /** Handlebars source of the html. */
  source: string
  /** Sources of the template's own headers, by their proper spelling: From, Subject, Reply-To. */
  headers: Readonly<Record<string, string>>
}

export interface TemplateChooser {
  /** @throws BadRequest `template '<name>' not found` and its like (messages.md section 3) */
  choose(domain: Domain, request: TemplateRequest): Promise<ChosenTemplate>
}

export interface RenderedTemplate {
  html: string
  /** Made from the html if requested, else null. */
  text: string | null
  headers: Readonly<Record<string, string>>
}

/** Rendering failed for the variables at hand: too deep, too long, too slow (templates.md rule 25). */
export class RenderError extends Error {
  override name = 'RenderError'
}

export interface TemplateRenderer {
  /** @throws RenderError */
  render(
    accountId: string,
    template: ChosenTemplate,
    variables: Readonly<Record<string, unknown>>,
    options: { text: boolean },
  ): Promise<RenderedTemplate>
}

/** What tracking needs to know of one recipient's copy. */
export interface TrackedCopy {
  accountId: string
  domain: Domain
  messageId: string
  storageKey: string
  deliveryId: string
  recipient: string
  tags: readonly string[]
  options: MessageOptions
  /** The mailing list that the copy goes through, by its own id. */
  listSid: string | null
  /** One of many copies: a default of bulk mail applies (tracking.md rule 15). */
  isBulk: boolean
  /** A text or header field of the copy contains an unsubscribe variable. */
  usesVariable: boolean
}

export interface TrackedParts {
  text: string | null
  html: string | null
  amp: string | null
}

export interface Tracking {
  /** Only header fields are added: texts and variables stay as they are. */
  textsStay: boolean
  /** The value of an unsubscribe variable. */
  variable(name: UnsubscribeVariable): string
  /**
   * The parts with footers, rewritten links and pixel; the same object if nothing changes. The same copy
   * has the same bytes every time: a retry and the archive must not differ from the first attempt. Resolves
   * once everything that the parts refer to is stored.
   * `personal`: made for this recipient, so that no other copy has the same texts.
   */
  rewrite(parts: TrackedParts, personal: boolean): Promise<TrackedParts>
  /** Fields to add when the sender gave no List-Unsubscribe. `usesVariable`: the body has an unsubscribe variable. */
  headers(usesVariable: boolean): readonly (readonly [name: string, value: string])[]
}

export interface Tracker {
  /** Null: nothing of this copy is tracked, and it has no variables. */
  trackingOf(copy: TrackedCopy): MaybePromise<Tracking | null>
}

export const NO_TRACKER: Tracker = { trackingOf: () => null }

/** The domain that a message is counted for. */
export type SendingDomain = Pick<Domain, 'accountId' | 'name'>

/** What opens and clicks show of recipients (messages.md rules 44, 45). */
export interface RecipientHabits {
  /** Per address key the best time in Unix milliseconds within the window; unknown ones are left out. */
  bestTimes(
    domain: SendingDomain,
    addresses: readonly string[],
    window: { from: number; to: number },
  ): Promise<ReadonlyMap<string, number>>
  /** Per address key the IANA time zone; unknown ones are left out. */
  timeZones(domain: SendingDomain, addresses: readonly string[]): Promise<ReadonlyMap<string, string>>
}

export const NO_HABITS: RecipientHabits = {
  bestTimes: async () => new Map(),
  timeZones: async () => new Map(),
}

/** What says which addresses a message without a request leaves from. */
export type SourceOwner = Pick<Domain, 'accountId' | 'sendingIps' | 'sendingPoolId' | 'dynamicPoolId'>

/** Source keys by the ids of deliveries. */
export type SourceKeys = (deliveryId: string) => string

export interface SourceChooser {
  /** Whether the account may send from the address. */
  mayUse(accountId: string, ip: string): boolean
  /** Gives the `source_key` of each delivery's row: what it leaves from, which also names its lane (sending/ips/source-addresses.ts). */
  keysFor(sender: SourceOwner, requested: { ip: string | null; pool: string | null }): SourceKeys
  /** Whether the account may send from a pool of that id. */
  hasPool(accountId: string, id: string): boolean
}

/** What lists need to know of a message. */
export type ListPost =
  | ({ way: 'api' } & PostFacts)
  | ({ way: 'smtp'; envelopeSender: string | null } & PostFacts)

interface PostFacts {
  accountId: string
  /** Row id of the message. */
  messagePk: string
  headers: readonly (readonly [name: string, value: string])[]
  lists: readonly Mailbox[]
  /** Bare addresses that get a copy of their own. */
  exclude: readonly string[]
}

/** Mailing lists among the recipients of a call (messages.md rule 8). */
export interface ListExpander {
  /** The address keys among `recipients` that are lists of the account. */
  listsAmong(accountId: string, recipients: readonly Mailbox[]): MaybePromise<ReadonlySet<string>>
  /** Subscribed members of these lists: exact if more than `upTo` are on them, else members of any state. */
  countMembers(accountId: string, lists: readonly Mailbox[], upTo: number): Promise<number>
  /** Makes the expansion of a post durable, in the transaction of its message. */
  expansionStatements(post: ListPost, now: number): Promise<readonly Statement[]>
  /** Something to expand may have been committed. */
  wake(): void
}

export const NO_LISTS: ListExpander = {
  listsAmong: () => new Set(),
  countMembers: async () => 0,
  expansionStatements: async () => [],
  wake() {},
}
