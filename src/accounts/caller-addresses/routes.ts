/** The addresses that an account may be called from, over HTTP (accounts.md section 8). */
import type { Clock } from '../../base/clock.ts'
import { BadRequest } from '../../base/errors.ts'
import { canonicalCidr } from '../../base/ip.ts'
import { invalidFormat } from '../../base/values.ts'
import type { Caller } from '../../http/auth.ts'
import { type Operation, operation } from '../../http/operation.ts'
import type { Params } from '../../http/params.ts'
import type { AccountDirectory } from '../account-directory.ts'
import { type AllowedCallers, entriesAllow } from './allowed-callers.ts'
import type { CallerAddress, CallerAddressStore } from './store.ts'
import { isBoundToAddresses } from './who.ts'

const DESCRIPTION_LENGTH_MAX = 255
const COMMON = { path: '/v2/ip_whitelist', tag: 'Account' } as const
const WRITE = { area: 'keys', access: 'write' } as const
const ADDRESS = {
  name: 'address',
  type: 'string',
  required: true,
  description: 'IP address or CIDR network',
} as const
const DESCRIPTION = { name: 'description', type: 'string', description: 'Free text' } as const
const FORCE = {
  name: 'force',
  type: 'boolean',
  description: 'Also if the calling address can then call no more',
  default: false,
} as const
const LISTED = { 200: { description: 'The list; if it is empty, every address may call' } } as const

export interface CallerAddressParts {
  stored: CallerAddressStore
  allowed: AllowedCallers
  accounts: Pick<AccountDirectory, 'byId'>
  clock: Clock
}

export function callerAddressRoutes(parts: CallerAddressParts): Operation[] {
  const { stored, allowed, clock } = parts
  const listOf = async ({ accountId }: Caller) => ({
    addresses: (await stored.list(accountId)).map(({ address, description }) => ({
      ip_address: address,
      description,
    })),
  })

  return [
    operation({
      ...COMMON,
      method: 'GET',
      id: 'listCallerAddresses',
      summary: 'List the addresses that API keys and SMTP logins may be used from',
      auth: { area: 'keys', access: 'read' },
      params: [],
      responses: LISTED,
      handler: ({ caller }) => listOf(caller),
    }),
    operation({
      ...COMMON,
      method: 'POST',
      id: 'addCallerAddress',
      audit: { subject: ['address'], given: ['address', 'description'] },
      summary: 'Allow an address or network to call; with the first one all others are refused',
      auth: WRITE,
      params: [ADDRESS, DESCRIPTION, FORCE],
      responses: LISTED,
      async handler({ params, caller, remoteAddress }) {
        const entry = { address: addressOf(params), description: descriptionOf(params) ?? '' }
        const { accountId } = caller
        await refuseLockout(parts, params, caller, remoteAddress, (entries) => [...entries, entry])
        await stored.add(accountId, entry, Math.floor(clock.now()))
        allowed.changed()
        return listOf(caller)
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      id: 'changeCallerAddress',
      audit: { subject: ['address'], given: ['address', 'description'] },
      summary: 'Change the description of an address',
      auth: WRITE,
      params: [ADDRESS, DESCRIPTION],
      responses: LISTED,
      async handler({ params, caller }) {
        const entry = { address: addressOf(params), description: descriptionOf(params) ?? '' }
        await stored.describe(caller.accountId, entry)
        return listOf(caller)
      },
    }),
    operation({
      ...COMMON,
      method: 'DELETE',
      id: 'removeCallerAddress',
      audit: { subject: ['address'], given: ['address'] },
      summary: 'Remove an address; without any, every address may call',
      auth: WRITE,
      params: [ADDRESS, FORCE],
      responses: LISTED,
      async handler({ params, caller, remoteAddress }) {
        const address = addressOf(params)
        const without = (entries: readonly CallerAddress[]) =>
          entries.filter((entry) => entry.address !== address)
        await refuseLockout(parts, params, caller, remoteAddress, without)
        await stored.remove(caller.accountId, address)
        allowed.changed()
        return listOf(caller)
      },
    }),
  ]
}

/** @throws BadRequest if the change would shut out the address that it comes from, unless `force` is given */
async function refuseLockout(
  { stored, accounts }: CallerAddressParts,
  params: Params,
  caller: Caller,
  address: string,
  change: (entries: readonly CallerAddress[]) => readonly CallerAddress[],
): Promise<void> {
  if (params.boolean('force') === true || !isBoundToAddresses(caller)) return
  const own = change(await stored.list(caller.accountId))
  const parentId = own.length > 0 ? null : ((await accounts.byId(caller.accountId))?.parentId ?? null)
  const effective = parentId === null ? own : await stored.list(parentId)
  if (!entriesAllow(effective, address)) throw new BadRequest('the change would block your own address')
}

/** @throws BadRequest */
function addressOf(params: Params): string {
  const address = canonicalCidr(params.required('address', 'IP address can not be blank'))
  if (address === null) throw new BadRequest('Invalid IP Address or CIDR')
  return address
}

function descriptionOf(params: Params): string | undefined {
  const description = params.given('description')
  if (description !== undefined && description.length > DESCRIPTION_LENGTH_MAX)
    throw invalidFormat('description', description)
  return description
}
