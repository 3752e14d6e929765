/**
 * The page of topics behind the unsubscribe links of a domain (consent.md rules 12, 13): tags and lists that the account gave a
 * title. The person switches topics off and on, or all mail of the domain. Every change goes through the unsubscriber, as
 * that of a link for one topic does, so a topic that the sender switched off cannot be switched on here.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../base/time/clock.ts'
import { HourlyQuota } from '../../people/accounts/hourly-quota.ts'
import type { ConsentSource } from '../../platform/store/schema.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import { keyOf, type ListStore } from '../lists/store.ts'
import { ALL_MAIL } from '../suppressions/given-records.ts'
import type { Unsubscription } from './links/tokens.ts'
import type { TrackingDirectory } from './tracking-settings.ts'
import type { Unsubscriber, Visitor } from './unsubscribe.ts'
import type { ShownTopic } from './unsubscribe-pages.ts'

/** What a person sends: everything off or on, or the topics that were shown and those that are wanted, by id. */
export type Choice =
  | 'unsubscribe-all'
  | 'resubscribe-all'
  | { shown: readonly string[]; on: readonly string[] }

/** Topics, and whether any mail of the domain is sent. */
interface Preferred<T = ShownTopic> {
  topics: T[]
  all: Pick<ShownTopic, 'isOn' | 'isFixed'>
}

export type PreferencePages = ReturnType<typeof createPreferencePages>

interface PreferenceParts {
  settings: Pick<TrackingDirectory, 'get'>
  domains: Pick<DomainDirectory, 'byId'>
  lists: Pick<ListStore, 'topicsOf'>
  unsubscriber: Unsubscriber
  clock: Clock
}

/** Lists on one page, so that what it sends fits into a body of 4 KB. */
const LISTS_MAX = 30
/**
 * Topics that one recipient of a domain switches on within an hour: all of a page, and some again. Switching off is never refused,
 * so this bounds the events of whoever has a forwarded mail and clicks to and fro.
 */
const SWITCHED_ON_PER_HOUR = 60
const SOURCE: ConsentSource = 'preference_page'

/** A topic and the link for it alone. */
interface Topic extends ShownTopic {
  from: Unsubscription
}

export function createPreferencePages(parts: PreferenceParts) {
  const { settings, domains, lists, unsubscriber } = parts
  const switchedOn = new HourlyQuota(parts.clock, SWITCHED_ON_PER_HOUR)

  async function topicsOf(from: Unsubscription): Promise<Preferred<Topic> | null> {
    const { preferences } = await settings.get(from.domainId)
    const domain = preferences.isActive ? await domains.byId(from.domainId) : null
    if (domain?.accountId !== from.accountId) return null
    const titles = preferences.topics
    const [all, ...states] = await unsubscriber.tagStates(from, [ALL_MAIL, ...titles.map(({ tag }) => tag)])
    const tags = states.map(
      ({ tag, ...state }, at): Topic => ({
        ...{ id: idOf('tag', tag.toLowerCase()), title: titles[at]?.title ?? tag, ...state },
        from: { ...from, scope: 'tags', tags: [tag], listSid: null },
      }),
    )
    const found = await lists.topicsOf(from.accountId, domain.name, keyOf(from.recipient), LISTS_MAX)
    const titled = found.map(
      ({ id, title, isOn, byLink }): Topic => ({
        ...{ id: idOf('list', id), title, isOn, isFixed: !isOn && !byLink },
        from: { ...from, scope: 'list', tags: [], listSid: id },
      }),
    )
    const topics = [...tags, ...titled]
    return topics.length === 0 || all === undefined ? null : { topics, all }
  }

  return {
    /** Null: the domain has no such page, or nothing to choose from for this person. */
    of: topicsOf,
    /** False: some topics stayed off, because this person switched on too many within an hour. */
    async change(from: Unsubscription, choice: Choice, visitor: Visitor): Promise<boolean> {
      const all: Unsubscription = { ...from, scope: 'domain', tags: [], listSid: null }
      const mayReturn = () => switchedOn.take(`${from.domainId} ${keyOf(from.recipient)}`) === 0
      if (choice === 'unsubscribe-all') {
        await unsubscriber.unsubscribe(all, visitor, SOURCE)
        return true
      }
      if (choice === 'resubscribe-all') {
        if (!mayReturn()) return false
        await unsubscriber.resubscribe(all, visitor, SOURCE)
        return true
      }
      const known = await topicsOf(from)
      if (known === null || !known.all.isOn) return true
      let isWhole = true
      const [shown, on] = [new Set(choice.shown), new Set(choice.on)]
      for (const topic of known.topics) {
        const isWanted = on.has(topic.id)
        if (topic.isFixed || !shown.has(topic.id) || isWanted === topic.isOn) continue
        if (!isWanted) await unsubscriber.unsubscribe(topic.from, visitor, SOURCE)
        else if (mayReturn()) await unsubscriber.resubscribe(topic.from, visitor, SOURCE)
        else isWhole = false
      }
      return isWhole
    },
  }
}

/** Short, and the same as long as the topic exists. */
const idOf = (kind: 'tag' | 'list', key: string) =>
  createHash('sha256').update(`${kind} ${key}`).digest('base64url').slice(0, 11)
