/** Mailing lists as sending uses them: which recipients are lists, and the copies of their members. */
import type { Clock } from '../../base/time/clock.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { addressKey, type Mailbox, parseMailbox } from '../../protocols/mime/address.ts'
import { sendTime } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { decidePost, type ListRecipient, listHeaders, type Post } from '../../sending/lists/expand.ts'
import { type Expansion, expansionStatement } from '../../sending/lists/expansion-job.ts'
import type { ListStore } from '../../sending/lists/store.ts'
import type { Habits } from '../../watching/events/habits.ts'
import type { MessageRecord, MessageRecords } from '../record/record.ts'
import { type DueTime, dueTime, type NewCopy } from './decide.ts'
import { copyStatements, deliveryRows, type KeyParts, type RowParts, sourceKeys } from './rows.ts'
import { bestTimes } from './timing.ts'

/** A message to lists. */
interface ListPost {
  post: Extract<Post, { accountId: string }>
  /** Row id of the message. */
  messagePk: string
  lists: readonly Mailbox[]
  /** Bare addresses that get a copy of their own. */
  exclude: readonly string[]
}

/** Mailing lists among the recipients of a call (messages.md rule 8). */
export type ListExpander = ReturnType<typeof createListExpander>

/** Addresses in one query. */
const KEYS_MAX = 500

export function createListExpander(parts: {
  store: Store
  lists: ListStore
  domains: DomainDirectory
  wake(): void
}) {
  const { store, lists, domains } = parts

  return {
    async listsAmong(accountId: string, recipients: readonly Mailbox[]): Promise<ReadonlySet<string>> {
      const keys = recipients.map((mailbox) => addressKey(mailbox))
      const found = new Set<string>()
      for (let at = 0; at < keys.length; at += KEYS_MAX) {
        const rows = await store.db
          .selectFrom('lists')
          .select('address_key')
          .where('address_key', 'in', keys.slice(at, at + KEYS_MAX))
          .where('account_id', '=', accountId)
          .execute()
        for (const row of rows) found.add(row.address_key)
      }
      return found
    },
    /** Subscribed members of these lists: exact if more than `upTo` are on them, else members of any state. */
    async countMembers(accountId: string, addresses: readonly Mailbox[], upTo: number): Promise<number> {
      const ids: string[] = []
      let members = 0
      for (const address of addresses) {
        const list = await lists.byKey(addressKey(address))
        if (list?.accountId !== accountId) continue
        ids.push(list.id)
        members += list.membersCount
      }
      return members <= upTo ? members : countSubscribed(store, ids, upTo + 1)
    },
    /** Makes the expansion of a post durable, in the transaction of its message. */
    async expansionStatements(
      { post, messagePk, lists: addresses, exclude }: ListPost,
      now: number,
    ): Promise<readonly Statement[]> {
      const statements: Statement[] = []
      for (const address of addresses) {
        const list = await lists.byKey(addressKey(address))
        const domain = list ? await domains.byName(list.domainName) : null
        // A domain that was deleted and created again may belong to another account: its keys are not the list's.
        if (list?.accountId !== post.accountId || domain?.accountId !== post.accountId) continue
        const verdict = await decidePost(lists, list, post)
        // Automatic mail, and mail that came through a list, is accepted but not distributed (mailing-lists.md rule 20).
        if (verdict.kind !== 'allowed') continue
        const headers = listHeaders(list, post)
        statements.push(expansionStatement({ domainId: domain.id, messagePk, list, headers, exclude }, now))
      }
      return statements
    },
    /** Something to expand may have been committed. */
    wake: parts.wake,
  }
}

/** Counts up to `max`. */
async function countSubscribed(store: Store, listIds: readonly string[], max: number): Promise<number> {
  let count = 0
  for (const id of listIds) {
    const rows = store.db
      .selectFrom('list_members')
      .select('list_id')
      .where('list_id', '=', id)
      .where('subscribed', '=', 1)
      .limit(max)
      .as('subscribed')
    const row = await store.db
      .selectFrom(rows)
      .select((of) => of.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    count += Number(row.count)
  }
  return count
}

/** The rows of some members' copies, for the expansion job. */
export async function memberStatements(
  parts: RowParts & {
    records: MessageRecords
    habits: Habits
    sources: KeyParts['sources']
    relays: KeyParts['relays']
    domains: Pick<DomainDirectory, 'byId'>
    clock: Clock
  },
  expansion: Expansion,
  members: readonly ListRecipient[],
): Promise<Statement[]> {
  const record = await parts.records.byId(expansion.messagePk)
  if (!record) return []
  const { options } = record
  const now = parts.clock.now()
  const start = Math.max(options.deliveryTime ?? 0, now)
  const domain = { accountId: record.accountId, name: record.domainName }
  const addresses = members.map(({ address }) => address)
  const own = await bestTimes(parts.habits, domain, addresses, options, start)
  const listDomain = await parts.domains.byId(expansion.domainId)
  const copies = members.map((member) => {
    const wanted = own.get(addressKey(member.address)) ?? start
    return memberCopy(record, expansion, member, dueTime(sendTime(wanted, options, listDomain), options))
  })
  const keyOf = sourceKeys(parts, record, listDomain)
  return copyStatements(record, parts, copies, deliveryRows(record, keyOf, copies, now), now)
}

/**
 * Variables of the call override those of the member, key by key (mailing-lists.md rule 25). A post from outside has none
 * (rule 26).
 */
function memberCopy(
  record: MessageRecord,
  expansion: Expansion,
  member: ListRecipient,
  due: DueTime,
): NewCopy {
  const own = record.content.listVariables?.[addressKey(member.address)] ?? {}
  return {
    recipient: { ...parseMailbox(member.address), name: member.name },
    variables: record.content.incoming ? null : { ...member.vars, ...own },
    due,
    list: {
      address: expansion.listAddress,
      listId: expansion.listHeaderId,
      sid: expansion.listId,
      domainId: expansion.domainId,
      ...expansion.headers,
    },
  }
}
