/** API keys over HTTP (accounts.md section 4). */
import type { Clock } from '../base/clock.ts'
import { formatIsoLocal } from '../base/dates.ts'
import { BadRequest, NotFound } from '../base/errors.ts'
import { invalidFormat } from '../base/values.ts'
import { type Operation, operation } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import type { Role } from '../http/rights.ts'
import type { ApiKeyRow } from '../store/schema.ts'
import { disabledReason, KEY_KINDS, KEY_ROLES, type KeyKind, type Keys, type NewKey } from './api-keys.ts'
import type { PublicKeys } from './public-keys.ts'
import type { UserDirectory } from './users/directory.ts'

const TAG = 'Account'
const READ = { area: 'keys', access: 'read' } as const
const WRITE = { area: 'keys', access: 'write' } as const

const DAY_SECONDS = 86_400
/** A hundred years. */
const LIFETIME_SECONDS_MAX = 36_525 * DAY_SECONDS
/** Of each free text of a key: the list shows all of them on one page. */
const TEXT_LENGTH_MAX = 255

export interface KeyRouteParts {
  keys: Keys
  publicKeys: PublicKeys
  userDirectory: Pick<UserDirectory, 'read'>
  clock: Clock
  /** Whether a domain belongs to an account. */
  ownsDomain(accountId: string, domainName: string): Promise<boolean>
}

export function keyRoutes({
  keys,
  publicKeys,
  userDirectory,
  clock,
  ownsDomain,
}: KeyRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: '/v1/keys',
      id: 'listKeys',
      tag: TAG,
      summary: 'List API keys',
      auth: READ,
      params: [
        { name: 'domain_name', type: 'string', description: 'Only keys of this domain' },
        { name: 'kind', type: 'string', description: 'Only keys of this kind', values: KEY_KINDS },
      ],
      responses: { 200: { description: 'Keys without their secrets' } },
      async handler({ params, caller }) {
        const filter = { domainName: params.text('domain_name'), kind: kindOf(params) }
        const rows = await keys.list(caller.accountId, filter)
        return { total_count: rows.length, items: rows.map((row) => keyView(row, clock.now())) }
      },
    }),
    operation({
      method: 'POST',
      path: '/v1/keys',
      id: 'createKey',
      audit: { given: ['role', 'kind', 'domain_name', 'user_id', 'email'], made: ['key.id'] },
      tag: TAG,
      summary: 'Create an API key; its secret is shown once',
      auth: WRITE,
      params: [
        { name: 'role', type: 'string', required: true, description: 'Rights', values: KEY_ROLES },
        { name: 'kind', type: 'string', description: 'Default user', values: KEY_KINDS },
        { name: 'domain_name', type: 'string', description: 'For kind domain' },
        { name: 'description', type: 'string', description: 'Free text' },
        { name: 'expiration', type: 'integer', description: 'Lifetime in seconds' },
        { name: 'user_id', type: 'string', description: 'Owner, a user of the account; needed for kind web' },
        { name: 'user_name', type: 'string', description: 'Free text' },
        { name: 'email', type: 'string', description: 'Needed for kind web' },
      ],
      responses: { 200: { description: 'The key with its secret' } },
      async handler({ params, caller: { accountId } }) {
        const given = newKeyOf(params, accountId, clock.now())
        if (given.domainName !== null && !(await ownsDomain(accountId, given.domainName)))
          throw new NotFound('Domain not found')
        if (given.userId !== null) await userDirectory.read(accountId, given.userId)
        const { row, secret } = await keys.create(given)
        return { message: 'great success', key: { ...keyView(row, clock.now()), secret } }
      },
    }),
    operation({
      method: 'DELETE',
      path: '/v1/keys/{key_id}',
      id: 'deleteKey',
      tag: TAG,
      summary: 'Delete an API key',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'Deleted' } },
      async handler({ path, caller }) {
        await keys.remove(caller.accountId, path.key_id)
        return { message: 'key deleted' }
      },
    }),
    operation({
      method: 'POST',
      path: '/v1/keys/public',
      id: 'regeneratePublicKey',
      tag: TAG,
      summary: 'Create the public key, or replace it; it authenticates the validation of addresses only',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'The new key; the former one has stopped' } },
      handler: async ({ caller }) => ({
        key: await publicKeys.regenerate(caller.accountId),
        message: 'The public API key has been successfully regenerated.',
      }),
    }),
  ]
}

/** @throws BadRequest with the contract's text */
function kindOf(params: Params): KeyKind | undefined {
  const text = params.text('kind')
  const kind = KEY_KINDS.find((candidate) => candidate === text)
  if (text !== undefined && kind === undefined)
    throw new BadRequest(`expected \`kind\` param to be one of [${KEY_KINDS.join(' ')}] or absent`)
  return kind
}

function roleOf(params: Params, kind: KeyKind): Role {
  const text = params.required('role')
  const role = KEY_ROLES.find((candidate) => candidate === text)
  if (role === undefined)
    throw new BadRequest(`expected \`role\` param to be one of [${KEY_ROLES.join(' ')}]`)
  if (kind === 'domain' && role !== 'sending')
    throw new BadRequest('a key of kind domain must have the role sending')
  if (kind !== 'domain' && role === 'sending')
    throw new BadRequest('the role sending is for keys of kind domain')
  return role
}

/** accounts.md section 4 rules 2 to 4. @throws BadRequest */
function newKeyOf(params: Params, accountId: string, now: number): NewKey & { userId: string | null } {
  const kind = kindOf(params) ?? 'user'
  const needs = (name: string, by: KeyKind) => (kind === by ? params.required(name) : params.text(name))
  return {
    accountId,
    kind,
    role: roleOf(params, kind),
    domainName: needs('domain_name', 'domain')?.toLowerCase() ?? null,
    userId: needs('user_id', 'web') ?? null,
    requestor: shortText('email', needs('email', 'web')) ?? null,
    userName: shortText('user_name', params.text('user_name')) ?? null,
    description: shortText('description', params.text('description')) ?? '',
    expiresAt: expiryOf(params, kind, now),
  }
}

function shortText(name: string, value: string | undefined): string | undefined {
  if (value !== undefined && value.length > TEXT_LENGTH_MAX) throw invalidFormat(name, value)
  return value
}

/** On a whole second, since the key is refused from the second on that its view shows. */
function expiryOf(params: Params, kind: KeyKind, now: number): number | null {
  const given = params.integer('expiration', { min: 1, max: LIFETIME_SECONDS_MAX })
  const seconds = kind === 'web' ? Math.min(given ?? DAY_SECONDS, DAY_SECONDS) : given
  return seconds === undefined ? null : (Math.floor(now / 1000) + seconds) * 1000
}

function keyView(row: ApiKeyRow, now: number): Record<string, unknown> {
  const reason = disabledReason(row, now)
  return {
    id: row.id,
    description: row.description,
    kind: row.kind,
    role: row.role,
    created_at: formatIsoLocal(new Date(row.created_at)),
    updated_at: formatIsoLocal(new Date(row.updated_at)),
    ...(row.expires_at !== null && { expires_at: formatIsoLocal(new Date(row.expires_at)) }),
    is_disabled: reason !== null,
    ...(reason !== null && { disabled_reason: reason }),
    domain_name: row.domain_name,
    requestor: row.requestor,
    user_name: row.user_name,
  }
}
