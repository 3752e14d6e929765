/** One recipient, over all domains and mailing lists of an account: suppressions and memberships. Events are found by the logs. */
import type { Area } from '../../area.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import type { Core } from '../../core.ts'
import { operation } from '../../platform/http/operation.ts'
import type { SuppressionRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import { RECIPIENT } from './shapes.ts'

/** More of either nobody reads on a page. */
const ROWS_MAX = 1_000
/** RFC 5321 §4.5.3.1: 64 octets, an @ and 255 octets. */
const ADDRESS_MAX = 320

export function recipientsArea({ store, clock }: Core): Area {
  return {
    operations: [
      operation({
        method: 'GET',
        path: '/sendwright/v1/people/{address}',
        id: 'readRecipient',
        tag: 'Recipients',
        summary: 'The suppressions and mailing lists of an address, over all domains of an account',
        auth: { area: 'suppressions', access: 'read' },
        answers: { 200: RECIPIENT },
        async handler({ path, caller }) {
          const address = path.address
          if (address.length > ADDRESS_MAX || !/^[^@]+@[^@]+$/.test(address))
            throw new BadRequest('The address in the path must be one mail address')
          const key = addressKey(address)
          return {
            address: key,
            suppressions: await suppressionsOf(store, caller.accountId, key, clock.now()),
            lists: await listsOf(store, caller.accountId, key),
          }
        },
      }),
    ],
  }
}

type Recipient = Of<typeof RECIPIENT>

// By the primary key, one look for each domain and list; CROSS JOIN keeps SQLite from beginning with all suppressions.
const SUPPRESSIONS = `SELECT domains.name AS domain, domains.id AS domain_id, found.kind, found.code, found.detail,
    found.created_at, found.expires_at
  FROM domains CROSS JOIN suppressions AS found
  WHERE domains.account_id = ? AND found.domain_id = domains.id
    AND found.kind IN ('bounces', 'complaints', 'unsubscribes', 'whitelists') AND found.address = ?
    AND (found.expires_at IS NULL OR found.expires_at > ?)
  ORDER BY domains.name, found.kind LIMIT ${ROWS_MAX}`

type Found = Omit<SuppressionRow, 'address' | 'account_id' | 'event_id'> & { domain: string }

async function suppressionsOf(
  store: Store,
  accountId: string,
  key: string,
  now: number,
): Promise<Recipient['suppressions']> {
  const rows = (await store.read({
    sql: SUPPRESSIONS,
    values: [accountId, key, Math.floor(now)],
  })) as unknown as Found[]
  const ids = rows.filter(({ kind }) => kind === 'unsubscribes').map(({ domain_id }) => domain_id)
  const tags = ids.length === 0 ? [] : await tagsOf(store, ids, key)
  return rows.map(({ domain, domain_id, kind, code, detail, created_at, expires_at }) => ({
    ...{ domain, kind, code, detail },
    tags: tags.filter((row) => kind === 'unsubscribes' && row.domain_id === domain_id).map(({ tag }) => tag),
    created_at: timeOf(created_at),
    expires_at: expires_at === null ? null : timeOf(expires_at),
  }))
}

const tagsOf = (store: Store, domainIds: readonly string[], key: string) =>
  store.db
    .selectFrom('unsubscribe_tags')
    .select(['domain_id', 'tag'])
    .where('domain_id', 'in', domainIds)
    .where('address', '=', key)
    .orderBy('tag_key')
    .execute()

async function listsOf(store: Store, accountId: string, key: string): Promise<Recipient['lists']> {
  const rows = await store.db
    .selectFrom('lists')
    .innerJoin('list_members', (join) =>
      join.onRef('list_members.list_id', '=', 'lists.id').on('list_members.address_key', '=', key),
    )
    .select(['lists.address', 'lists.name', 'list_members.name as member_name'])
    .select(['list_members.subscribed', 'list_members.pending_id'])
    .where('lists.account_id', '=', accountId)
    .orderBy('lists.address_key')
    .limit(ROWS_MAX)
    .execute()
  return rows.map(({ address, name, member_name, subscribed, pending_id }) => ({
    ...{ address, title: name, member_name },
    subscribed: Number(subscribed) === 1,
    pending: pending_id !== null,
  }))
}

const timeOf = (at: number) => formatRfc3339(new Date(Number(at)))
