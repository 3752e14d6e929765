/** Addresses as the operator sees and sets them (ips-pools.md section 5). */

import { canonicalIp } from '../../base/net/ip.ts'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import type { Core } from '../../core.ts'
import { ACCOUNT_ID } from '../../people/accounts/account-directory.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { flagParam, textParam } from '../../platform/http/request/inputs.ts'
import type { IpRow } from '../../platform/store/schema.ts'
import type { Block, Blocks } from './blocks/blocks.ts'
import type { KnownAddresses } from './known-addresses.ts'
import { SUCCESS } from './routes.ts'
import { ipNotFound } from './rules.ts'
import { type BLOCK, DONE, INSTALLED_ADDRESS, INSTALLED_ADDRESSES, SHARED_SETTING } from './shapes.ts'
import { removeWarmups } from './warmup/removal.ts'

const PATH = '/sendwright/v1/ips'
const SHARED_PATH = '/sendwright/v1/accounts/{account_id}/shared-ips'
const api = operationsOf({ tag: 'IPs', auth: { area: 'account', only: 'first' } })
/** In place of an account's id. */
const NOBODY = 'none'

interface OperatorRouteParts extends Pick<Core, 'store' | 'accounts'> {
  known: KnownAddresses
  blocks: Blocks
}

export function operatorRoutes(parts: OperatorRouteParts): Operation[] {
  const { store, known, blocks } = parts

  async function accountOf(id: string): Promise<string> {
    const account = ACCOUNT_ID.test(id) ? await parts.accounts.byId(id) : null
    if (account === null || account.status === 'closed') throw new NotFound('Account not found')
    return account.id
  }

  const viewOf = async (ip: string) => {
    const row = await store.db.selectFrom('ips').selectAll().where('ip', '=', ip).executeTakeFirstOrThrow()
    return view(row, known, blocks.list())
  }

  async function update(ip: string, enabled: boolean | undefined, owner: string | undefined): Promise<void> {
    const accountId = owner === undefined || owner === NOBODY ? null : await accountOf(owner)
    await known.change(async (tx) => {
      const address = known.book().byIp.get(ip)
      if (address === undefined) throw ipNotFound()
      if (enabled !== undefined)
        await tx
          .updateTable('ips')
          .set({ is_enabled: enabled ? 1 : 0 })
          .where('ip', '=', ip)
          .execute()
      if (owner === undefined || accountId === address.accountId) return
      if (!address.isDedicated) throw new BadRequest('a shared IP belongs to no account')
      const used = await tx
        .selectFrom('domain_ips')
        .select('ip')
        .where('ip', '=', ip)
        .limit(1)
        .executeTakeFirst()
      if (used !== undefined || address.poolId !== null)
        throw new BadRequest('the IP is assigned to domains or to a pool')
      await tx.updateTable('ips').set({ account_id: accountId }).where('ip', '=', ip).execute()
      await removeWarmups(tx, { ip })
    })
  }

  return [
    api.get(PATH, {
      id: 'listAllIps',
      summary: 'List all addresses of the installation, with the result of their checks',
      answers: { 200: INSTALLED_ADDRESSES },
      async handler() {
        const rows = await store.db.selectFrom('ips').selectAll().orderBy('ip').execute()
        const blocked = blocks.list()
        return { items: rows.map((row) => view(row, known, blocked)) }
      },
    }),
    api.put(`${PATH}/{ip}`, {
      id: 'updateIp',
      audit: { given: ['account_id'] },
      summary: 'Switch an address on or off, or give it to an account',
      params: {
        enabled: flagParam('Whether mail may leave from it'),
        account_id: textParam(`Owner of a dedicated address, or \`${NOBODY}\``),
      },
      answers: { 200: INSTALLED_ADDRESS },
      async handler({ input, path }) {
        const ip = canonicalIp(path.ip) ?? ''
        const { enabled, account_id: owner } = input()
        await update(ip, enabled, owner)
        return viewOf(ip)
      },
    }),
    api.delete(`${PATH}/{ip}/blocks/{site}`, {
      id: 'clearIpBlock',
      summary: 'Use an address again for a provider that blocked it',
      answers: { 200: DONE, 404: 'It is not blocked there' },
      async handler({ path }) {
        const ip = canonicalIp(path.ip) ?? ''
        if (blocks.find(ip, path.site) === null) throw new NotFound('the IP is not blocked by that provider')
        await blocks.clear(ip, path.site)
        return SUCCESS
      },
    }),
    api.put(SHARED_PATH, {
      id: 'setSharedIps',
      summary: 'Say whether an account may send from shared addresses',
      params: { allowed: flagParam('Whether it may; every account may at first', { required: true }) },
      answers: { 200: SHARED_SETTING },
      async handler({ input, path }) {
        const accountId = await accountOf(path.account_id)
        const { allowed } = input()
        await known.change(async (tx) => {
          await tx.deleteFrom('shared_ip_exclusions').where('account_id', '=', accountId).execute()
          if (!allowed)
            await tx.insertInto('shared_ip_exclusions').values({ account_id: accountId }).execute()
        })
        return { account_id: accountId, allowed }
      },
    }),
  ]
}

function view(row: IpRow, known: KnownAddresses, blocked: readonly Block[]): Of<typeof INSTALLED_ADDRESS> {
  const {
    isEnabled = false,
    isLocal = false,
    poolId = null,
    isWarming = false,
    localIp = null,
    proxy = null,
  } = known.book().byIp.get(row.ip) ?? {}
  const isSet = (value: number) => Number(value) === 1
  const flag = (value: number | null) => (value === null ? null : isSet(value))
  return {
    ip: row.ip,
    dedicated: isSet(row.is_dedicated),
    account_id: row.account_id,
    enabled: isSet(row.is_enabled),
    usable: isEnabled,
    configured_here: isLocal,
    local_ip: localIp,
    proxy,
    pool_id: poolId,
    is_on_warmup: isWarming,
    blocked_by: blocked.filter(({ ip }) => ip === row.ip).map(blockView),
    check: {
      checked_at: row.checked_at === null ? null : new Date(Number(row.checked_at)).toISOString(),
      bound: flag(row.is_bound),
      dns_agrees: flag(row.is_confirmed),
      rdns: row.rdns,
      fault: row.fault,
    },
  }
}

/** As the operator sees it. */
export const blockView = ({
  site,
  provider,
  state,
  reply,
  since_at,
  until_at,
  times,
}: Block): Of<typeof BLOCK> => ({
  ...{ site, provider, state, reply, times },
  since: new Date(since_at).toISOString(),
  until: new Date(until_at).toISOString(),
})
