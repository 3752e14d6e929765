/** Subaccounts over HTTP (accounts.md section 3). */
import { formatGmt } from '../../base/dates.ts'
import { BadRequest } from '../../base/errors.ts'
import { ForeignJsonError, parseForeignJson } from '../../base/foreign-json.ts'
import { booleanOf, isPlainObject } from '../../base/values.ts'
import { type Operation, operation, type ParamDoc } from '../../http/operation.ts'
import { limitAndSkip } from '../../http/paging.ts'
import type { Params } from '../../http/params.ts'
import { FEATURE_DEFAULTS, type Feature } from '../account-directory.ts'
import type { SubaccountQuery } from './store.ts'
import type { Subaccount, Subaccounts } from './subaccounts.ts'

const TAG = 'Subaccounts'
const PATH = '/v5/accounts/subaccounts'
const ONE = `${PATH}/{subaccount_id}` as const
const READ = { area: 'subaccounts', access: 'read', only: 'parent' } as const
const WRITE = { area: 'subaccounts', access: 'write', only: 'parent' } as const
const SORTS = ['asc', 'desc'] as const
const TEXT_LENGTH_MAX = 1_000
const FEATURES = Object.keys(FEATURE_DEFAULTS) as Feature[]
const ANSWER = { 200: { description: 'The subaccount' } } as const

const LIST_PARAMS: ParamDoc[] = [
  { name: 'sort', type: 'string', description: 'By name', values: SORTS, default: 'asc' },
  { name: 'filter', type: 'string', description: 'Part of the name' },
  { name: 'limit', type: 'integer', description: '1 to 1000', default: 10 },
  { name: 'skip', type: 'integer', description: 'Leave out the first ones', default: 0 },
  { name: 'enabled', type: 'boolean', description: 'Only open ones, or only disabled ones' },
  { name: 'closed', type: 'boolean', description: 'Include closed ones', default: false },
]

export function subaccountRoutes(subaccounts: Subaccounts): Operation[] {
  return [...readRoutes(subaccounts), ...lifeRoutes(subaccounts), ...changeRoutes(subaccounts)]
}

function readRoutes(subaccounts: Subaccounts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: PATH,
      id: 'listSubaccounts',
      tag: TAG,
      summary: 'List subaccounts by name',
      auth: READ,
      params: LIST_PARAMS,
      responses: { 200: { description: 'Subaccounts' } },
      async handler({ params, caller }) {
        const { items, total } = await subaccounts.list(caller.accountId, queryOf(params))
        return { subaccounts: items.map(view), total }
      },
    }),
    operation({
      method: 'GET',
      path: ONE,
      id: 'readSubaccount',
      tag: TAG,
      summary: 'Read a subaccount, also a closed one',
      auth: READ,
      params: [],
      responses: ANSWER,
      handler: async ({ path, caller }) => ({
        subaccount: view(await subaccounts.read(caller.accountId, path.subaccount_id)),
      }),
    }),
  ]
}

function lifeRoutes(subaccounts: Subaccounts): Operation[] {
  return [
    operation({
      method: 'POST',
      path: PATH,
      id: 'createSubaccount',
      audit: { given: ['name'], made: ['subaccount.id'] },
      tag: TAG,
      summary: 'Create a subaccount',
      auth: WRITE,
      params: [{ name: 'name', type: 'string', required: true, description: '1 to 255 characters, unique' }],
      responses: ANSWER,
      handler: async ({ params, caller }) => ({
        subaccount: view(await subaccounts.create(caller.accountId, params.text('name') ?? '')),
      }),
    }),
    operation({
      method: 'DELETE',
      path: PATH,
      id: 'deleteSubaccount',
      audit: { by: 'operation' },
      onBehalfOf: 'argument',
      tag: TAG,
      summary: 'Close the subaccount that the header <prefix>On-Behalf-Of names, for good',
      description: 'Its keys and logins stop at once. What belongs to it is removed in the background.',
      // The account that the caller acts for is the one to close.
      auth: { area: 'subaccounts', access: 'write' },
      params: [],
      responses: { 200: { description: 'Closed' } },
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
    operation({
      method: 'POST',
      path: `${ONE}/disable`,
      id: 'disableSubaccount',
      audit: { given: ['reason', 'note'] },
      tag: TAG,
      summary: 'Stop a subaccount from sending; its queued mail is held',
      auth: WRITE,
      params: [
        { name: 'reason', type: 'string', description: 'Why, at most 1000 characters' },
        { name: 'note', type: 'string', description: 'More about it, at most 1000 characters' },
      ],
      responses: ANSWER,
      async handler({ params, path, caller }) {
        const why = { reason: shortText(params, 'reason'), note: shortText(params, 'note') }
        return { subaccount: view(await subaccounts.disable(caller.accountId, path.subaccount_id, why)) }
      },
    }),
    operation({
      method: 'POST',
      path: `${ONE}/enable`,
      id: 'enableSubaccount',
      tag: TAG,
      summary: 'Let a disabled subaccount send again; its held mail goes on',
      auth: WRITE,
      params: [],
      responses: ANSWER,
      handler: async ({ path, caller }) => ({
        subaccount: view(await subaccounts.enable(caller.accountId, path.subaccount_id)),
      }),
    }),
    operation({
      method: 'PUT',
      path: `${ONE}/features`,
      id: 'updateSubaccountFeatures',
      audit: { given: FEATURES },
      tag: TAG,
      summary: 'Switch features of a subaccount on or off',
      auth: WRITE,
      params: FEATURES.map((name) => ({ name, type: 'json', description: '`{"enabled": true}` or false' })),
      responses: { 200: { description: 'The features that were given' } },
      async handler({ params, path, caller }) {
        const features = featuresOf(params)
        await subaccounts.setFeatures(caller.accountId, path.subaccount_id, features)
        return { features: featureView(features) }
      },
    }),
  ]
}

function queryOf(params: Params): SubaccountQuery {
  return {
    ...limitAndSkip(params, { default: 10, max: 1000 }),
    sort: params.oneOf('sort', SORTS) ?? 'asc',
    filter: params.text('filter'),
    enabled: params.boolean('enabled'),
    closed: params.boolean('closed'),
  }
}

/** @throws BadRequest */
function shortText(params: Params, name: string): string {
  const text = params.text(name) ?? ''
  if (text.length > TEXT_LENGTH_MAX)
    throw new BadRequest(`${name} has more than ${TEXT_LENGTH_MAX} characters`)
  return text.replaceAll('\0', '')
}

/** Members that are not `{"enabled": <boolean>}` are ignored. @throws BadRequest when none is left */
function featuresOf(params: Params): Partial<Record<Feature, boolean>> {
  const features: Partial<Record<Feature, boolean>> = {}
  for (const name of FEATURES) {
    const enabled = enabledOf(params.value(name))
    if (enabled !== undefined) features[name] = enabled
  }
  if (Object.keys(features).length === 0) throw new BadRequest('No valid updates provided')
  return features
}

function enabledOf(given: unknown): boolean | undefined {
  const value = typeof given === 'string' ? parsed(given) : given
  const enabled = isPlainObject(value) ? value['enabled'] : undefined
  if (typeof enabled === 'string') return booleanOf(enabled)
  return typeof enabled === 'boolean' ? enabled : undefined
}

function parsed(text: string): unknown {
  try {
    return parseForeignJson(text)
  } catch (error) {
    if (error instanceof ForeignJsonError) return undefined
    throw error
  }
}

const featureView = (features: Partial<Record<Feature, boolean>>) =>
  Object.fromEntries(Object.entries(features).map(([name, enabled]) => [name, { enabled }]))

const view = ({ id, name, status, createdAt, updatedAt, features, disabled }: Subaccount) => ({
  id,
  name,
  status,
  created_at: formatGmt(new Date(createdAt)),
  updated_at: formatGmt(new Date(updatedAt)),
  features: featureView(features),
  ...(disabled && { disabled }),
})
