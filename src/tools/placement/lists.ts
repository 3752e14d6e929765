/** The rules of seed lists. */

import { newId, randomHex } from '../../base/ids.ts'
import { BadRequest, present } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { accountLockStatements } from '../../platform/store/account-rows.ts'
import { ifStale } from '../../platform/store/commits.ts'
import type { SeedListRow } from '../../platform/store/schema.ts'
import { insert, type Store } from '../../platform/store/store.ts'
import { fewerStatement, findList } from './store.ts'

/** Fields as given; absent ones get the default, or stay unchanged. */
export interface SeedListFields {
  sendingDomains?: readonly string[] | undefined
  name?: string | undefined
  seedFilter?: string | undefined
  providerFilter?: string | undefined
  remoteId?: string | undefined
}

export type SeedLists = ReturnType<typeof createSeedLists>

const LISTS_MAX = 100
const TEXT_LENGTH_MAX = 255
const FILTER_LENGTH_MAX = 4_096
const DOMAINS_MAX = 100
const AUTO_NAME = 'All seeds'

/** `host`: names the addresses of lists, which receive no mail. */
export function createSeedLists({ store, clock, host }: { store: Store; clock: Clock; host: string }) {
  async function add(
    accountId: string,
    fields: SeedListFields,
    target: string,
    isAuto: boolean,
  ): Promise<SeedListRow> {
    const now = clock.now()
    const row: SeedListRow = {
      id: newId(now),
      account_id: accountId,
      name: fields.name ?? 'Seed list',
      target_email: target,
      sending_domains_json: JSON.stringify(fields.sendingDomains ?? []),
      seed_filter: fields.seedFilter ?? '',
      provider_filter: fields.providerFilter ?? '',
      remote_id: fields.remoteId ?? '',
      is_auto: isAuto ? 1 : 0,
      created_at: Math.floor(now),
      updated_at: Math.floor(now),
      last_result_at: null,
    }
    const { sql, values } = insert('seed_lists', row)
    const added = { sql: `${sql} ON CONFLICT (account_id, target_email) DO NOTHING`, values }
    const limit = isAuto
      ? []
      : [...accountLockStatements(store, accountId), fewerStatement('lists', accountId, LISTS_MAX)]
    const tooMany = () => new BadRequest(`more than ${LISTS_MAX} seed lists`)
    await store.commit([...limit, added]).catch(ifStale(tooMany))
    return (await findList(store, accountId, target)) as SeedListRow
  }

  return {
    find: (accountId: string, id: string) => findList(store, accountId, id),
    /** @throws NotFound */
    async own(accountId: string, id: string): Promise<SeedListRow> {
      return present(await findList(store, accountId, id), 'seed list not found')
    },
    /** @throws BadRequest for a text that is too long, or over LISTS_MAX */
    async create(accountId: string, fields: SeedListFields): Promise<SeedListRow> {
      checkFields(fields)
      return add(accountId, fields, `seeds-${randomHex(8)}@${host}`, false)
    },
    async change(row: SeedListRow, fields: SeedListFields): Promise<SeedListRow> {
      checkFields(fields)
      const changed = {
        ...(fields.name !== undefined && { name: fields.name }),
        ...(fields.sendingDomains && { sending_domains_json: JSON.stringify(fields.sendingDomains) }),
        ...(fields.seedFilter !== undefined && { seed_filter: fields.seedFilter }),
        ...(fields.providerFilter !== undefined && { provider_filter: fields.providerFilter }),
        updated_at: Math.floor(clock.now()),
      }
      await store.db.updateTable('seed_lists').set(changed).where('id', '=', row.id).execute()
      return { ...row, ...changed }
    },
    async remove({ id }: SeedListRow): Promise<void> {
      await store.db.deleteFrom('seed_lists').where('id', '=', id).execute()
    },
    /** The account's list of all seeds, made when it is first needed. */
    async ofAll(accountId: string): Promise<SeedListRow> {
      const target = `seeds-all@${host}`
      const known = await findList(store, accountId, target)
      return known ?? add(accountId, { name: AUTO_NAME }, target, true)
    },
  }
}

function checkFields({
  name,
  seedFilter,
  providerFilter,
  remoteId,
  sendingDomains = [],
}: SeedListFields): void {
  const isLong = (text: string | undefined, max: number) => text !== undefined && text.length > max
  if (isLong(name, TEXT_LENGTH_MAX)) throw new BadRequest('name is too long')
  if (isLong(remoteId, TEXT_LENGTH_MAX)) throw new BadRequest('remote_id is too long')
  if (isLong(seedFilter, FILTER_LENGTH_MAX)) throw new BadRequest('seed_filter is too long')
  if (isLong(providerFilter, FILTER_LENGTH_MAX)) throw new BadRequest('provider_filter is too long')
  if (sendingDomains.length > DOMAINS_MAX || sendingDomains.some((domain) => domain.length > TEXT_LENGTH_MAX))
    throw new BadRequest(`sending_domains has more than ${DOMAINS_MAX} domains, or a long one`)
}
