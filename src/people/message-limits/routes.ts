/** Operations of monthly message limits (accounts.md section 5): the caller's own, and those of its subaccounts. */

import { BadRequest, Forbidden } from '../../base/process/errors.ts'
import { object, oneOf } from '../../base/shape.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { integerParam, otherParam } from '../../platform/http/request/inputs.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { AccountDirectory } from '../accounts/account-directory.ts'
import type { LimitSettings } from './setting.ts'
import { MESSAGE_LIMIT } from './shapes.ts'

const api = operationsOf({ tag: 'Message limits', auth: { area: 'message-limits' } })
const parentApi = operationsOf({ tag: 'Message limits', auth: { area: 'message-limits', only: 'parent' } })
const OWN = '/v5/accounts/limit/custom/monthly'
const OF_SUBACCOUNT = '/v5/accounts/subaccounts/{subaccount_id}/limit/custom/monthly'

/** The least limit of an account; a subaccount may have less. */
const ACCOUNT_MIN = 1_000
const ID_PATTERN = /^[0-9a-f]{24}$/
const FORBIDDEN = 'Forbidden - user does not have permission to view this resource'

const LIMIT_TEXT = 'Recipients per calendar month in UTC; at least 1000, for a subaccount 1'
const READ_ANSWERS = { 200: MESSAGE_LIMIT, 404: 'No limit is set' } as const
const CHANGE_ANSWERS = { 200: object('Done', { success: oneOf('Always true', [true]) }) }
const SUCCESS = { success: true } as const

export interface LimitRouteParts {
  settings: LimitSettings
  accounts: AccountDirectory
}

export function limitRoutes(parts: LimitRouteParts): Operation[] {
  return [...ownRoutes(parts), ...subaccountRoutes(parts)]
}

function ownRoutes({ settings, accounts }: LimitRouteParts): Operation[] {
  /** The limit of a subaccount is its parent's to change. @throws Forbidden */
  async function checkOwner(caller: Caller): Promise<{ min: number }> {
    const account = await accounts.byId(caller.accountId)
    if (account === null || account.parentId === null) return { min: ACCOUNT_MIN }
    if (caller.parentAccountId !== account.parentId) throw new Forbidden(FORBIDDEN)
    return { min: 1 }
  }

  return [
    api.get(OWN, {
      id: 'readMessageLimit',
      summary: 'Read the monthly message limit and its use',
      answers: READ_ANSWERS,
      handler: ({ caller }) => settings.read(caller.accountId),
    }),
    api.put(OWN, {
      id: 'setMessageLimit',
      summary: 'Set the monthly message limit: a hard stop',
      // The least value depends on the caller.
      params: { limit: otherParam(LIMIT_TEXT, { type: 'integer', required: true }) },
      answers: CHANGE_ANSWERS,
      async handler({ caller, params }) {
        const { min } = await checkOwner(caller)
        params.required('limit')
        await settings.set(
          caller.accountId,
          params.integer('limit', { min, invalid: tooLow(min), default: 0 }),
        )
        return SUCCESS
      },
    }),
    api.delete(OWN, {
      id: 'deleteMessageLimit',
      summary: 'Delete the monthly message limit',
      answers: CHANGE_ANSWERS,
      async handler({ caller }) {
        await checkOwner(caller)
        await settings.remove(caller.accountId)
        return SUCCESS
      },
    }),
    api.put('/v5/accounts/limit/custom/enable', {
      id: 'enableAccount',
      summary: 'Enable sending again after the limit was raised or deleted',
      answers: CHANGE_ANSWERS,
      async handler({ caller }) {
        await checkOwner(caller)
        await settings.lift(caller.accountId)
        return SUCCESS
      },
    }),
  ]
}

function subaccountRoutes({ settings, accounts }: LimitRouteParts): Operation[] {
  /** @throws Forbidden; `unknown` for what is no subaccount of the caller */
  async function subaccountOf(caller: Caller, id: string, unknown: () => Error): Promise<string> {
    const own = await accounts.byId(caller.accountId)
    if (own?.parentId !== null) throw new Forbidden(FORBIDDEN)
    const found = ID_PATTERN.test(id) ? await accounts.byId(id) : null
    if (found?.parentId !== caller.accountId || found.status === 'closed') throw unknown()
    return found.id
  }
  const target = (caller: Caller, id: string) =>
    subaccountOf(caller, id, () =>
      id === caller.accountId
        ? new BadRequest('Not a subaccount')
        : ID_PATTERN.test(id)
          ? new Forbidden(FORBIDDEN)
          : invalidId(),
    )

  return [
    parentApi.get(OF_SUBACCOUNT, {
      id: 'readSubaccountLimit',
      summary: 'Read the monthly message limit of a subaccount and its use',
      answers: READ_ANSWERS,
      handler: async ({ caller, path }) => settings.read(await target(caller, path.subaccount_id)),
    }),
    parentApi.put(OF_SUBACCOUNT, {
      id: 'setSubaccountLimit',
      summary: 'Set the monthly message limit of a subaccount',
      params: {
        limit: integerParam(LIMIT_TEXT, { required: true, min: 1, invalid: tooLow(1) }),
      },
      answers: CHANGE_ANSWERS,
      async handler({ caller, path, input }) {
        const id = await subaccountOf(caller, path.subaccount_id, invalidId)
        await settings.set(id, input().limit)
        return SUCCESS
      },
    }),
    parentApi.delete(OF_SUBACCOUNT, {
      id: 'deleteSubaccountLimit',
      summary: 'Delete the monthly message limit of a subaccount',
      answers: CHANGE_ANSWERS,
      async handler({ caller, path }) {
        await settings.remove(await target(caller, path.subaccount_id))
        return SUCCESS
      },
    }),
  ]
}

const invalidId = () => new BadRequest('Invalid subaccount ID')
/** Spelled as clients know it. */
const tooLow = (min: number) => `The limit parameter minumum is ${min}`
