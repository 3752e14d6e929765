/** Rate limits of single accounts, for the operator (auth-limits.md section 6 rule 6). */

import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { flag, integer, list, named, number, type Of, object, oneOf } from '../../base/shape.ts'
import type { Core } from '../../core.ts'
import {
  ACCOUNT_LIMITS,
  type AccountLimitName,
  type LimitName,
  type LimitSetting,
} from '../../platform/http/limits/rate-limit.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { integerParam } from '../../platform/http/request/inputs.ts'

const api = operationsOf({ tag: 'Rate limits', auth: { area: 'account', only: 'first' } })
const PATH = '/sendwright/v1/accounts/{account_id}/rate-limits'
const COUNT_MAX = 1_000_000_000

const LIMIT = named('AccountRateLimit', 'A rate limit of an account', {
  name: oneOf('What it limits', ACCOUNT_LIMITS),
  count: integer('How much fits into a window; 0: no limit'),
  window_seconds: number('Length of the window', { unit: 'seconds' }),
  is_default: flag('The general limit applies'),
})

interface RateLimitRouteParts extends Pick<Core, 'accountLimits' | 'accounts'> {
  limits: Readonly<Record<LimitName, LimitSetting>>
}

export function rateLimitRoutes(parts: RateLimitRouteParts): Operation[] {
  const { accountLimits, limits } = parts

  /** @throws NotFound */
  async function accountOf(id: string): Promise<string> {
    const account = await parts.accounts.byId(id)
    if (account === null || account.status === 'closed') throw new NotFound('Account not found')
    return account.id
  }

  const viewOf = (name: AccountLimitName, accountId: string): Of<typeof LIMIT> => {
    const own = accountLimits.countOf(name, accountId)
    const { count, windowMs } = limits[name]
    return { name, count: own ?? count, window_seconds: windowMs / 1000, is_default: own === undefined }
  }

  return [
    api.get(PATH, {
      id: 'listAccountRateLimits',
      summary: 'List the rate limits of an account',
      answers: { 200: object('All of them', { items: list('Limits', LIMIT) }) },
      async handler({ path }) {
        const accountId = await accountOf(path.account_id)
        return { items: ACCOUNT_LIMITS.map((name) => viewOf(name, accountId)) }
      },
    }),
    api.put(`${PATH}/{name}`, {
      id: 'setAccountRateLimit',
      summary: 'Set a rate limit of an account',
      params: {
        count: integerParam('Per window of the general limit; 0: no limit', {
          required: true,
          min: 0,
          max: COUNT_MAX,
        }),
      },
      answers: { 200: LIMIT },
      async handler({ path, input }) {
        const accountId = await accountOf(path.account_id)
        const name = nameOf(path.name)
        await accountLimits.set(name, accountId, input().count)
        return viewOf(name, accountId)
      },
    }),
    api.delete(`${PATH}/{name}`, {
      id: 'deleteAccountRateLimit',
      summary: 'Return a rate limit of an account to the general one',
      answers: { 200: LIMIT },
      async handler({ path }) {
        const accountId = await accountOf(path.account_id)
        const name = nameOf(path.name)
        await accountLimits.set(name, accountId, null)
        return viewOf(name, accountId)
      },
    }),
  ]
}

/** @throws BadRequest */
function nameOf(given: string): AccountLimitName {
  const name = ACCOUNT_LIMITS.find((known) => known === given)
  if (name === undefined) throw new BadRequest(`a limit is one of ${ACCOUNT_LIMITS.join(', ')}`)
  return name
}
