/**
 * Unsubscribing by a link or by mail, and its undoing (tracking.md rules 17 to 19). A change and its event are one
 * transaction, which itself checks whether there is anything to change: of two concurrent requests, one changes the
 * record and writes the event.
 *
 * 1. Domain or tags: entries of the unsubscribe list. An entry added by a link records what it replaced.
 * 2. List: `subscribed` of the member, marked as done by a link.
 * 3. Undoing removes what a link of this kind added, and nothing that the sender entered.
 */

import { newId } from '../../base/ids.ts'
import type { Core } from '../../core.ts'
import type { KnownDeliveries, KnownDelivery } from '../../mail/stored/known-deliveries.ts'
import type { ConsentSource, UnsubscribeTagRow } from '../../platform/store/schema.ts'
import { StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import { unsubscribedEvent, type Visit } from '../../watching/events/later-events.ts'
import type { Domain } from '../domains/domain.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import { type Cause, NOT_PENDING } from '../lists/consent.ts'
import { unsubscribeMember } from '../lists/service.ts'
import { keyOf, type ListStore } from '../lists/store.ts'
import { trailRow, trimmed } from '../lists/trail.ts'
import { addUnsubscribe } from '../suppressions/automatic.ts'
import { ALL_MAIL } from '../suppressions/given-records.ts'
import { removeTagStatements } from '../suppressions/store.ts'
import { UNKNOWN_CLIENT } from './client-info.ts'
import { UNKNOWN_LOCATION } from './geo.ts'
import type { Unsubscription } from './links/tokens.ts'

/** The client, as far as the request identifies it. */
export type Visitor = Pick<Visit, 'ip' | 'client' | 'geolocation'>

export type Unsubscriber = ReturnType<typeof createUnsubscriber>

interface TagState {
  tag: string
  isOn: boolean
  /** Off, and not by a link: a link cannot switch it on. */
  isFixed: boolean
}

interface UnsubscriberParts extends Pick<Core, 'store' | 'clock' | 'recorder'> {
  domains: Pick<DomainDirectory, 'byId'>
  lists: ListStore
  known: KnownDeliveries
}

/** A try fails only if another change of the same record committed at the same moment. */
const TRIES_MAX = 20
/** Mail shows neither address nor program of its sender. */
const UNKNOWN_VISITOR: Visitor = { ip: '', client: UNKNOWN_CLIENT, geolocation: UNKNOWN_LOCATION }

export function createUnsubscriber(parts: UnsubscriberParts) {
  const { store, domains, lists, known, clock } = parts

  async function ownDomain({ domainId, accountId }: Unsubscription): Promise<Domain | null> {
    const domain = await domains.byId(domainId)
    return domain?.accountId === accountId ? domain : null
  }

  const causeOf = (visitor: Visitor | null, source: ConsentSource): Cause => ({
    ...{ source, at: clock.now() },
    ...(visitor !== null && { ip: visitor.ip, userAgent: visitor.client['user-agent'] }),
  })

  /** The event of a change and its webhook rows; none when the message is no longer known. */
  function eventOf(
    from: Unsubscription,
    delivery: KnownDelivery | null,
    visitor: Visitor | null,
    tags: readonly string[] | null,
  ): { id: string; statements: Statement[] } {
    const now = clock.now()
    if (delivery === null || delivery.accountId !== from.accountId) return { id: newId(now), statements: [] }
    const { about, recipientProvider, deliveredAt } = delivery
    const summary = tags === null ? about.summary : { ...about.summary, tags: [...tags] }
    const to = { recipient: from.recipient, recipientDomain: delivery.recipientDomain }
    const visit: Visit = { ...(visitor ?? UNKNOWN_VISITOR), recipientProvider, deliveredAt }
    const event = unsubscribedEvent({ ...about, summary }, to, visit, now)
    return { id: event.id, statements: parts.recorder.statements([event]) }
  }

  async function addTags(from: Unsubscription, visitor: Visitor | null, source: ConsentSource) {
    const domain = await ownDomain(from)
    if (domain === null) return false
    const delivery = await known.find(from.deliveryId)
    const tags = tagsOf(from)
    return retried(async () => {
      const present = await tagRows(store, from)
      const missing = tags.filter((tag) => !covers(present, tag))
      if (missing.length === 0) return false
      const event = eventOf(from, delivery, visitor, tags)
      await store.commit([
        ...addStatements(from, present, missing, event.id, clock.now()),
        ...event.statements,
        ...tagTrail(domain, from, missing, 'unsubscribed', causeOf(visitor, source)),
      ])
      return true
    })
  }

  async function setMember(
    from: Unsubscription & { listSid: string },
    visitor: Visitor | null,
    source: ConsentSource,
  ): Promise<boolean> {
    const delivery = await known.find(from.deliveryId)
    const key = keyOf(from.recipient)
    const changed = await unsubscribeMember(
      lists,
      from.listSid,
      from.recipient,
      causeOf(visitor, source),
      () => [markByLink(from.listSid, key), ...eventOf(from, delivery, visitor, null).statements],
    )
    return changed === 'changed'
  }

  async function unsetMember(from: Unsubscription & { listSid: string }, cause: Cause): Promise<boolean> {
    const key = keyOf(from.recipient)
    const changed = await lists.changeMembers(from.listSid, [key], (list, present) => {
      const member = present.get(key)
      const ours = list.accountId === from.accountId && member?.subscribed === 0 && member.by_link === 1
      if (!ours) return { change: null, result: false }
      // It may have asked to join again meanwhile: it waits for nothing any more.
      const row = { ...member, subscribed: 1 as const, ...NOT_PENDING, by_link: 0 as const }
      return { change: { write: [row], added: 0, cause }, result: true }
    })
    return changed ?? false
  }

  return {
    /** Resolves to whether this changed anything. `visitor` null: requested by mail. `source`: for the consent trail. */
    unsubscribe: (from: Unsubscription, visitor: Visitor | null, source: ConsentSource): Promise<boolean> =>
      isOfList(from) ? setMember(from, visitor, source) : addTags(from, visitor, source),
    /** Undoes what such a link added; resolves to whether there was anything. */
    async resubscribe(from: Unsubscription, visitor: Visitor, source: ConsentSource): Promise<boolean> {
      const cause = causeOf(visitor, source)
      if (isOfList(from)) return unsetMember(from, cause)
      const domain = await ownDomain(from)
      return retried(async () => {
        const present = await tagRows(store, from)
        const keys = new Set(tagsOf(from).map((tag) => tag.toLowerCase()))
        const added = present.filter((row) => keys.has(row.tag_key) && row.undo_json !== null)
        if (added.length === 0) return false
        const tags = added.map(({ tag }) => tag)
        await store.commit([
          ...added.flatMap((row) => undoStatements(from, row)),
          ...(domain === null ? [] : tagTrail(domain, from, tags, 'resubscribed', cause)),
        ])
        return true
      })
    },
    async isUnsubscribed(from: Unsubscription): Promise<boolean> {
      if (isOfList(from)) {
        const member = await lists.member(from.listSid, keyOf(from.recipient))
        return member === null || !member.subscribed
      }
      const present = await tagRows(store, from)
      return tagsOf(from).every((tag) => covers(present, tag))
    },
    /** What of these tags, or of all mail (`*`), the recipient of the domain's mail gets. */
    async tagStates(from: Unsubscription, tags: readonly string[]): Promise<TagState[]> {
      const present = await tagRows(store, from)
      return tags.map((tag) => {
        const off = present.filter(({ tag_key }) => tag_key === ALL_MAIL || tag_key === tag.toLowerCase())
        return { tag, isOn: off.length === 0, isFixed: off.some(({ undo_json }) => undo_json === null) }
      })
    },
  }
}

const isOfList = (from: Unsubscription): from is Unsubscription & { listSid: string } =>
  from.scope === 'list' && from.listSid !== null

/** A tag link of a message without tags acts as the domain's link (rule 13). Tags are case-insensitive. */
function tagsOf({ scope, tags }: Unsubscription): readonly string[] {
  if (scope !== 'tags' || tags.length === 0 || tags.includes(ALL_MAIL)) return [ALL_MAIL]
  return [...new Map(tags.map((tag) => [tag.toLowerCase(), tag])).values()]
}

const covers = (present: readonly UnsubscribeTagRow[], tag: string) =>
  present.some(({ tag_key }) => tag_key === ALL_MAIL || tag_key === tag.toLowerCase())

function tagRows(store: Store, { domainId, recipient }: Unsubscription): Promise<UnsubscribeTagRow[]> {
  return store.db
    .selectFrom('unsubscribe_tags')
    .selectAll()
    .where('domain_id', '=', domainId)
    .where('address', '=', addressKey(recipient))
    .execute()
}

/**
 * Adds `missing` to the record. The first statement locks the record; the second rolls the unit back if the record
 * has changed since it was read.
 */
function addStatements(
  from: Unsubscription,
  present: readonly UnsubscribeTagRow[],
  missing: readonly string[],
  eventId: string,
  now: number,
): Statement[] {
  const address = addressKey(from.recipient)
  const record = [from.domainId, address]
  const owner = { id: from.domainId, accountId: from.accountId }
  const [lock, ...rest] = addUnsubscribe(owner, from.recipient, missing, eventId, now)
  if (lock === undefined) throw new Error('An unsubscribe writes its record first')
  const keys = missing.map((tag) => tag.toLowerCase())
  const marks = keys.map(() => '?').join(', ')
  // `*` stands alone: the tags that it replaces are restored when it is undone.
  const replaced = missing.includes(ALL_MAIL) ? present.map(({ tag, undo_json }) => [tag, undo_json]) : []
  return [
    lock,
    {
      sql: `UPDATE suppressions SET code = code WHERE domain_id = ? AND kind = 'unsubscribes' AND address = ?
        AND (SELECT count(*) FROM unsubscribe_tags AS covered WHERE covered.domain_id = suppressions.domain_id
          AND covered.address = suppressions.address) = ${present.length}
        AND NOT EXISTS (SELECT 1 FROM unsubscribe_tags AS covered WHERE covered.domain_id = suppressions.domain_id
          AND covered.address = suppressions.address AND covered.tag_key IN ('${ALL_MAIL}', ${marks}))`,
      values: [...record, ...keys],
      expectRows: 1,
    },
    ...rest,
    {
      sql: `UPDATE unsubscribe_tags SET undo_json = ? WHERE domain_id = ? AND address = ? AND tag_key IN (${marks})`,
      values: [JSON.stringify(replaced), ...record, ...keys],
      expectRows: keys.length,
    },
  ]
}

/** Removes a tag and restores what it replaced. */
function undoStatements(from: Unsubscription, row: UnsubscribeTagRow): Statement[] {
  const address = addressKey(from.recipient)
  const replaced = JSON.parse(row.undo_json ?? '[]') as [tag: string, undo: string | null][]
  const restored = replaced.map(
    ([tag, undo]): Statement => ({
      sql: `INSERT INTO unsubscribe_tags (domain_id, address, tag_key, tag, undo_json) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (domain_id, address, tag_key) DO NOTHING`,
      values: [from.domainId, address, tag.toLowerCase(), tag, undo],
    }),
  )
  const [lock, ...rest] = removeTagStatements(from.domainId, address, row.tag_key)
  if (lock === undefined) throw new Error('The removal of a tag locks its record first')
  return [lock, ...restored, ...rest]
}

/** Rows of the consent trail for tags of a domain; `*` is all its mail. */
function tagTrail(
  { name, accountId }: Domain,
  { recipient }: Unsubscription,
  tags: readonly string[],
  action: 'unsubscribed' | 'resubscribed',
  cause: Cause,
): Statement[] {
  const key = addressKey(recipient)
  const subject = { account_id: accountId, address_key: key, list_id: null, list_address: null }
  return [
    ...tags.map((topic) => trailRow({ ...subject, domain_name: name, topic }, action, cause)),
    trimmed(accountId, key),
  ]
}

const markByLink = (listId: string, key: string): Statement => ({
  sql: 'UPDATE list_members SET by_link = 1 WHERE list_id = ? AND address_key = ?',
  values: [listId, key],
  expectRows: 1,
})

async function retried(run: () => Promise<boolean>): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      return await run()
    } catch (error) {
      if (!(error instanceof StaleWrite) || tries === TRIES_MAX) throw error
    }
  }
}
