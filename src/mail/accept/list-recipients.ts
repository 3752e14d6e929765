/** Mailing lists as sending uses them: which recipients are lists, and the copies of their members. */
import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { addressKey, type Mailbox, parseMailbox } from '../../protocols/mime/address.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { decidePost, type ListRecipient, listHeaders } from '../../sending/lists/expand.ts'
import { type Expansion, expansionStatement } from '../../sending/lists/expansion-job.ts'
import type { ListDomains } from '../../sending/lists/list-domains.ts'
import type { ListStore } from '../../sending/lists/store.ts'
import type { MessageRecords } from '../record/message-records.ts'
import type { MessageRecord } from '../record/record.ts'
import { copyStatements, deliveryRows, type NewCopy, type RowParts, sourceKeys } from './acceptance-rows.ts'
import type { ListExpander, RecipientHabits, SourceChooser } from './collaborators.ts'
import { bestTimes, type DueTime, dueTime } from './timing.ts'

const NONE: ReadonlySet<string> = new Set()

/** Addresses in one query. */
const KEYS_MAX = 500

export function createListExpander(parts: {
  store: Store
  lists: ListStore
  listDomains: ListDomains
  domains: DomainDirectory
  wake(): void
}): ListExpander {
  const { store, lists, listDomains, domains } = parts

  function among(
    accountId: string,
    names: ReadonlySet<string>,
    recipients: readonly Mailbox[],
  ): MaybePromise<ReadonlySet<string>> {
    return recipients.some(({ domain }) => names.has(domain)) ? find(accountId, names, recipients) : NONE
  }

  async function find(
    accountId: string,
    names: ReadonlySet<string>,
    recipients: readonly Mailbox[],
  ): Promise<ReadonlySet<string>> {
    const keys = recipients.filter(({ domain }) => names.has(domain)).map((mailbox) => addressKey(mailbox))
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
  }

  return {
    listsAmong(accountId, recipients) {
      return whenKnown(listDomains.get(accountId), (names) => among(accountId, names, recipients))
    },
    async countMembers(accountId, addresses, upTo) {
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
    async expansionStatements(post, now) {
      const statements: Statement[] = []
      for (const address of post.lists) {
        const list = await lists.byKey(addressKey(address))
        const domain = list ? await domains.byName(list.domainName) : null
        // A domain that was deleted and created again may belong to another account: its keys are not the list's.
        if (list?.accountId !== post.accountId || domain?.accountId !== post.accountId) continue
        const verdict = await decidePost(lists, list, post)
        // Automatic mail, and mail that came through a list, is accepted but not distributed (mailing-lists.md rule 20).
        if (verdict.kind !== 'allowed') continue
        const own = listHeaders(list, post)
        statements.push(
          expansionStatement(
            { domainId: domain.id, messagePk: post.messagePk, list, headers: own, exclude: post.exclude },
            now,
          ),
        )
      }
      return statements
    },
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
    habits: RecipientHabits
    sources: SourceChooser
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
  const copies = members.map((member) => {
    const due = dueTime(own.get(addressKey(member.address)) ?? start, options)
    return memberCopy(record, expansion, member, due)
  })
  const keyOf = sourceKeys(parts, record, await parts.domains.byId(expansion.domainId))
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
