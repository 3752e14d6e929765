/** API keys over HTTP (accounts.md section 4). */

import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { integer, list, message, type Of, object, text } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { formatIsoLocal } from '../../base/time/dates.ts'
import { invalidFormat } from '../../base/values.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { type InputOf, integerParam, textParam, wordParam } from '../../platform/http/request/inputs.ts'
import type { Role } from '../../platform/http/rights/rights.ts'
import type { ApiKeyRow } from '../../platform/store/schema.ts'
import type { UserDirectory } from '../accounts/user-directory.ts'
import {
  disabledReason,
  KEY_KINDS,
  KEY_ROLES,
  type KeyKind,
  type Keys,
  type NewKey,
  type PublicKeys,
} from './api-keys.ts'
import { API_KEY, NEW_API_KEY } from './shapes.ts'

const api = operationsOf({ tag: 'Account', auth: { area: 'keys' } })

const MESSAGE = text('What was done')
const DAY_SECONDS = 86_400
/** A hundred years. */
const LIFETIME_SECONDS_MAX = 36_525 * DAY_SECONDS
/** Characters of each free text of a key: the list shows all of them on one page. */
const TEXT_LENGTH_MAX = 255

interface KeyRouteParts {
  keys: Keys
  publicKeys: PublicKeys
  userDirectory: Pick<UserDirectory, 'read'>
  clock: Clock
  /** Name of the service's pod; null: there are none. */
  pod: string | null
  /** Whether a domain belongs to an account. */
  ownsDomain(accountId: string, domainName: string): Promise<boolean>
}

export function keyRoutes({
  keys,
  publicKeys,
  userDirectory,
  clock,
  pod,
  ownsDomain,
}: KeyRouteParts): Operation[] {
  return [
    api.get('/v1/keys', {
      id: 'listKeys',
      summary: 'List API keys',
      params: {
        domain_name: textParam('Only keys of this domain'),
        kind: wordParam('Only keys of this kind', kindOf, { values: KEY_KINDS }),
      },
      answers: {
        200: object('Keys', { total_count: integer('Number of items'), items: list('Keys', API_KEY) }),
      },
      async handler({ input, caller }) {
        const { domain_name: domainName, kind } = input()
        const rows = await keys.list(caller.accountId, { domainName, kind })
        return { total_count: rows.length, items: rows.map((row) => keyView(row, clock.now(), pod)) }
      },
    }),
    api.post('/v1/keys', {
      id: 'createKey',
      audit: { given: ['role', 'kind', 'domain_name', 'user_id', 'email'], made: ['key.id'] },
      summary: 'Create an API key; its secret is shown once',
      params: NEW_KEY,
      answers: {
        200: object('The key with its secret', { message: MESSAGE, key: NEW_API_KEY }),
        404: 'No such domain, or no such user',
      },
      async handler({ input, caller: { accountId } }) {
        const given = newKeyOf(input(), accountId, clock.now())
        if (given.domainName !== null && !(await ownsDomain(accountId, given.domainName)))
          throw new NotFound('Domain not found')
        if (given.userId !== null) await userDirectory.read(accountId, given.userId)
        const { row, secret } = await keys.create(given)
        return { message: 'great success', key: { ...keyView(row, clock.now(), pod), secret } }
      },
    }),
    api.delete('/v1/keys/{key_id}', {
      id: 'deleteKey',
      summary: 'Delete an API key',
      answers: { 200: message('key deleted') },
      async handler({ path, caller }) {
        await keys.remove(caller.accountId, path.key_id)
        return { message: 'key deleted' }
      },
    }),
    api.post('/v1/keys/public', {
      id: 'regeneratePublicKey',
      summary: 'Create the public key, or replace it; it authenticates the validation of addresses only',
      answers: {
        200: object('The new key; the former one has stopped', { key: text('The key'), message: MESSAGE }),
      },
      handler: async ({ caller }) => ({
        key: await publicKeys.regenerate(caller.accountId),
        message: 'The public API key has been successfully regenerated.',
      }),
    }),
  ]
}

/** @throws BadRequest with the contract's text */
function kindOf(text: string): KeyKind {
  const kind = KEY_KINDS.find((candidate) => candidate === text)
  if (kind === undefined)
    throw new BadRequest(`expected \`kind\` param to be one of [${KEY_KINDS.join(' ')}] or absent`)
  return kind
}

/** @throws BadRequest with the contract's text */
function roleOf(text: string): Role {
  const role = KEY_ROLES.find((candidate) => candidate === text)
  if (role === undefined)
    throw new BadRequest(`expected \`role\` param to be one of [${KEY_ROLES.join(' ')}]`)
  return role
}

function shortText(value: string, name: string): string {
  if (value.length > TEXT_LENGTH_MAX) throw invalidFormat(name, value)
  return value
}

const NEW_KEY = {
  kind: wordParam('Default user', kindOf, { values: KEY_KINDS }),
  role: wordParam('Rights', roleOf, { required: true, values: KEY_ROLES }),
  domain_name: textParam('Required for kind domain'),
  user_id: textParam('Owner, a user of the account; required for kind web'),
  email: wordParam('Required for kind web', shortText),
  user_name: wordParam('Free text', shortText),
  description: wordParam('Free text', shortText),
  expiration: integerParam('Lifetime in seconds; of kind web at most a day, which is its default', {
    min: 1,
    max: LIFETIME_SECONDS_MAX,
  }),
}
type GivenKey = InputOf<typeof NEW_KEY>

/** accounts.md section 4 rules 2 to 4. @throws BadRequest */
function newKeyOf(given: GivenKey, accountId: string, now: number): NewKey & { userId: string | null } {
  const { kind = 'user', role } = given
  if (kind === 'domain' && role !== 'sending')
    throw new BadRequest('a key of kind domain must have the role sending')
  if (kind !== 'domain' && role === 'sending')
    throw new BadRequest('the role sending is for keys of kind domain')
  for (const name of NEEDED[kind]) {
    if (given[name] === undefined) throw new BadRequest(`Missing mandatory parameter: ${name}`)
  }
  return {
    accountId,
    kind,
    role,
    domainName: given.domain_name?.toLowerCase() ?? null,
    userId: given.user_id ?? null,
    requestor: given.email ?? null,
    userName: given.user_name ?? null,
    description: given.description ?? '',
    expiresAt: expiryOf(given.expiration, kind, now),
  }
}

const NEEDED = { domain: ['domain_name'], user: [], web: ['user_id', 'email'] } as const

/** On a whole second, since the key is refused from the second on that its view shows. */
function expiryOf(given: number | undefined, kind: KeyKind, now: number): number | null {
  const seconds = kind === 'web' ? Math.min(given ?? DAY_SECONDS, DAY_SECONDS) : given
  return seconds === undefined ? null : (Math.floor(now / 1000) + seconds) * 1000
}

function keyView(row: ApiKeyRow, now: number, pod: string | null): Of<typeof API_KEY> {
  const reason = disabledReason(row, now)
  return {
    id: row.id,
    description: row.description,
    kind: row.kind as KeyKind,
    role: row.role as Role,
    created_at: formatIsoLocal(new Date(row.created_at)),
    updated_at: formatIsoLocal(new Date(row.updated_at)),
    ...(row.expires_at !== null && { expires_at: formatIsoLocal(new Date(row.expires_at)) }),
    is_disabled: reason !== null,
    ...(reason !== null && { disabled_reason: reason }),
    domain_name: row.domain_name,
    requestor: row.requestor,
    user_name: row.user_name,
    ...(pod !== null && { pod }),
  }
}
