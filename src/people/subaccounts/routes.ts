/** Subaccounts over HTTP (accounts.md section 3). */

import { foreignJsonIn } from '../../base/foreign-json.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { integer, list, message, type Of, object } from '../../base/shape.ts'
import { formatGmt } from '../../base/time/dates.ts'
import { booleanOf, isPlainObject } from '../../base/values.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  choiceParam,
  flagParam,
  type InputOf,
  limitParam,
  parsedParam,
  skipParam,
  textParam,
} from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import { type Feature, forFeatures } from '../accounts/account-directory.ts'
import { GIVEN_FEATURES, SUBACCOUNT, SUBACCOUNT_ANSWER } from './shapes.ts'
import type { Subaccount, Subaccounts } from './subaccounts.ts'

const api = operationsOf({ tag: 'Subaccounts', auth: { area: 'subaccounts', only: 'parent' } })
const PATH = '/v5/accounts/subaccounts'
const ONE = `${PATH}/{subaccount_id}` as const
const SORTS = ['asc', 'desc'] as const
const TEXT_LENGTH_MAX = 1_000
const ANSWER = { 200: SUBACCOUNT_ANSWER } as const
const FEATURE = parsedParam('`{"enabled": true}` or false', (params, name) => enabledOf(params.value(name)), {
  type: 'json',
})
const FEATURES = forFeatures(FEATURE)

const LIST_PARAMS = {
  limit: limitParam(10, 1000),
  skip: skipParam(),
  sort: choiceParam('By name', SORTS, { default: 'asc' }),
  filter: textParam('Part of the name'),
  enabled: flagParam('Only open ones, or only disabled ones'),
  closed: flagParam('Include closed ones', { default: false }),
}

/** An empty one is refused with the contract's text. */
const NAME = parsedParam('1 to 255 characters, unique', (params, name) => params.text(name) ?? '', {
  required: true,
})

export function subaccountRoutes(subaccounts: Subaccounts): Operation[] {
  return [...readRoutes(subaccounts), ...lifeRoutes(subaccounts), ...changeRoutes(subaccounts)]
}

function readRoutes(subaccounts: Subaccounts): Operation[] {
  return [
    api.get(PATH, {
      id: 'listSubaccounts',
      summary: 'List subaccounts by name',
      params: LIST_PARAMS,
      answers: {
        200: object('Subaccounts', {
          subaccounts: list('Of this page', SUBACCOUNT),
          total: integer('Of all pages'),
        }),
      },
      async handler({ input, caller }) {
        const { items, total } = await subaccounts.list(caller.accountId, input())
        return { subaccounts: items.map(view), total }
      },
    }),
    api.get(ONE, {
      id: 'readSubaccount',
      summary: 'Read a subaccount, also a closed one',
      answers: ANSWER,
      handler: async ({ path, caller }) => ({
        subaccount: view(await subaccounts.read(caller.accountId, path.subaccount_id)),
      }),
    }),
  ]
}

function lifeRoutes(subaccounts: Subaccounts): Operation[] {
  return [
    api.post(PATH, {
      id: 'createSubaccount',
      audit: { given: ['name'], made: ['subaccount.id'] },
      summary: 'Create a subaccount',
      params: { name: NAME },
      answers: ANSWER,
      handler: async ({ input, caller }) => ({
        subaccount: view(await subaccounts.create(caller.accountId, input().name)),
      }),
    }),
    api.delete(PATH, {
      id: 'deleteSubaccount',
      audit: { by: 'operation' },
      onBehalfOf: 'argument',
      summary: 'Close the subaccount that the header <prefix>On-Behalf-Of names, for good',
      description: 'Its keys and logins stop at once. What belongs to it is removed in the background.',
      // The account that the caller acts for is the one to close.
      auth: { area: 'subaccounts', access: 'write' },
      answers: { 200: message('Subaccount successfully deleted'), 404: 'No such subaccount' },
      async handler({ caller, onBehalfOf, remoteAddress, requestId }) {
        if (onBehalfOf === undefined || onBehalfOf === caller.accountId) throw new BadRequest('Bad request')
        await subaccounts.close({ caller, remoteAddress, requestId }, onBehalfOf)
        return { message: 'Subaccount successfully deleted' }
      },
    }),
  ]
}

function changeRoutes(subaccounts: Subaccounts): Operation[] {
  return [
    api.post(`${ONE}/disable`, {
      id: 'disableSubaccount',
      audit: { given: ['reason', 'note'] },
      summary: 'Stop a subaccount from sending; its queued mail is held',
      params: {
        reason: parsedParam('Why, at most 1000 characters', shortText),
        note: parsedParam('More about it, at most 1000 characters', shortText),
      },
      answers: ANSWER,
      handler: async ({ input, path, caller }) => ({
        subaccount: view(await subaccounts.disable(caller.accountId, path.subaccount_id, input())),
      }),
    }),
    api.post(`${ONE}/enable`, {
      id: 'enableSubaccount',
      summary: 'Let a disabled subaccount send again; its held mail goes on',
      answers: ANSWER,
      handler: async ({ path, caller }) => ({
        subaccount: view(await subaccounts.enable(caller.accountId, path.subaccount_id)),
      }),
    }),
    api.put(`${ONE}/features`, {
      id: 'updateSubaccountFeatures',
      audit: { given: Object.keys(FEATURES) },
      summary: 'Switch features of a subaccount on or off',
      params: FEATURES,
      answers: { 200: object('Changed', { features: GIVEN_FEATURES }) },
      async handler({ input, path, caller }) {
        const features = givenOf(input())
        await subaccounts.setFeatures(caller.accountId, path.subaccount_id, features)
        return { features: featureView(features) }
      },
    }),
  ]
}

/** @throws BadRequest */
function shortText(params: Params, name: string): string {
  const text = params.text(name) ?? ''
  if (text.length > TEXT_LENGTH_MAX)
    throw new BadRequest(`${name} has more than ${TEXT_LENGTH_MAX} characters`)
  return text.replaceAll('\0', '')
}

/** @throws BadRequest when no feature is given */
function givenOf(input: InputOf<typeof FEATURES>): Partial<Record<Feature, boolean>> {
  const features: Partial<Record<Feature, boolean>> = {}
  for (const [name, enabled] of Object.entries(input) as [Feature, boolean | undefined][]) {
    if (enabled !== undefined) features[name] = enabled
  }
  if (Object.keys(features).length === 0) throw new BadRequest('No valid updates provided')
  return features
}

/** Undefined for anything but `{"enabled": <boolean>}`, which is ignored. */
function enabledOf(given: unknown): boolean | undefined {
  const value = typeof given === 'string' ? foreignJsonIn(given) : given
  const enabled = isPlainObject(value) ? value['enabled'] : undefined
  if (typeof enabled === 'string') return booleanOf(enabled)
  return typeof enabled === 'boolean' ? enabled : undefined
}

const featureView = <F extends Partial<Record<Feature, boolean>>>(features: F) =>
  Object.fromEntries(Object.entries(features).map(([name, enabled]) => [name, { enabled }])) as {
    [N in keyof F]: { enabled: boolean }
  }

const view = ({
  id,
  name,
  status,
  createdAt,
  updatedAt,
  features,
  disabled,
  pod,
}: Subaccount): Of<typeof SUBACCOUNT> => ({
  id,
  name,
  status,
  created_at: formatGmt(new Date(createdAt)),
  updated_at: formatGmt(new Date(updatedAt)),
  features: featureView(features),
  ...(pod !== null && { pod }),
  ...(disabled && { disabled }),
})
