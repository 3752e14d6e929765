/** The addresses that an account monitors: those that it may send from, unless it has removed them (monitoring.md section 3). */

import { canonicalIp } from '../../base/net/ip.ts'
import { BadRequest, Conflict, Forbidden, NotFound } from '../../base/process/errors.ts'
import { quotable } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { inList } from '../../platform/store/lists.ts'
import type { MonitoredIpRow } from '../../platform/store/schema.ts'
import { type AddressBook, mayUse } from '../../sending/ips/address-book.ts'

const WORDS_LENGTH_MAX = 255

export interface MonitoredIp {
  ip: string
  ip_pool: string
  description: string
}

interface Words {
  ip_pool?: string | undefined
  description?: string | undefined
}

interface MonitoredIpParts extends Pick<Core, 'store' | 'clock'> {
  book(): AddressBook
}

export function createMonitoredIps({ store, clock, book }: MonitoredIpParts) {
  async function rowsOf(accountIds: readonly string[]): Promise<Map<string, MonitoredIpRow>> {
    const rows = await store.db
      .selectFrom('monitored_ips')
      .selectAll()
      .where('account_id', 'in', inList(store, accountIds))
      .execute()
    return new Map(rows.map((row) => [`${row.account_id} ${row.ip}`, row]))
  }

  /** In the order of the text, each once; the words are those of the first account that has some. */
  async function list(accountIds: readonly string[], limit: number): Promise<MonitoredIp[]> {
    const rows = await rowsOf(accountIds)
    const found: MonitoredIp[] = []
    for (const { ip } of book().addresses) {
      const holders = accountIds.filter((id) => mayUse(book(), id, ip) && !isRemoved(rows.get(`${id} ${ip}`)))
      if (holders.length === 0) continue
      const row = holders.map((id) => rows.get(`${id} ${ip}`)).find((one) => one !== undefined)
      found.push({ ip, ip_pool: row?.ip_pool ?? '', description: row?.description ?? '' })
      if (found.length === limit) break
    }
    return found
  }

  /** @throws NotFound */
  async function one(accountId: string, text: string): Promise<MonitoredIp> {
    const ip = canonicalIp(text)
    const row = (await rowsOf([accountId])).get(`${accountId} ${ip}`)
    if (ip === null || !mayUse(book(), accountId, ip) || isRemoved(row)) throw new NotFound('IP not found')
    return { ip, ip_pool: row?.ip_pool ?? '', description: row?.description ?? '' }
  }

  async function write(accountId: string, ip: string, words: Words, is_removed: 0 | 1): Promise<void> {
    const row = { ip_pool: words.ip_pool ?? '', description: words.description ?? '', is_removed }
    await store.db
      .insertInto('monitored_ips')
      .values({ account_id: accountId, ip, ...row, created_at: Math.floor(clock.now()) })
      .onConflict((conflict) => conflict.columns(['account_id', 'ip']).doUpdateSet(row))
      .execute()
  }

  return {
    list,
    one,
    /** @throws BadRequest, Forbidden for an address that is not the account's, Conflict if it was described before */
    async add(accountId: string, text: string, words: Words): Promise<MonitoredIp> {
      const ip = canonicalIp(text)
      if (ip === null) throw new BadRequest(`${quotable(text)} is not an IP address`)
      checkWords(words)
      if (!mayUse(book(), accountId, ip))
        throw new Forbidden(undefined, { why: 'the account may not send from this address' })
      const row = (await rowsOf([accountId])).get(`${accountId} ${ip}`)
      if (row !== undefined && !isRemoved(row)) throw new Conflict('IP is already monitored')
      await write(accountId, ip, words, 0)
      return one(accountId, ip)
    },
    /** @throws NotFound, BadRequest */
    async update(accountId: string, text: string, words: Words): Promise<MonitoredIp> {
      const { ip } = await one(accountId, text)
      checkWords(words)
      await write(accountId, ip, words, 0)
      return one(accountId, ip)
    },
    /** @throws NotFound */
    async remove(accountId: string, text: string): Promise<void> {
      const { ip } = await one(accountId, text)
      await write(accountId, ip, {}, 1)
    },
  }
}

export type MonitoredIps = ReturnType<typeof createMonitoredIps>

const isRemoved = (row: MonitoredIpRow | undefined) => Number(row?.is_removed ?? 0) === 1

/** @throws BadRequest */
function checkWords(words: Words): void {
  for (const [name, value = ''] of Object.entries(words))
    if (value.length > WORDS_LENGTH_MAX || /\p{Cc}/u.test(value))
      throw new BadRequest(`${name} has more than ${WORDS_LENGTH_MAX} characters, or control characters`)
}
