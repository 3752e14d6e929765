/** The addresses that an account may be called from, over HTTP (accounts.md section 8). */

import { canonicalCidr } from '../../base/net/ip.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { invalidFormat } from '../../base/values.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { flagParam, parsedParam, wordParam } from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { AccountDirectory } from '../accounts/account-directory.ts'
import { CALLER_ADDRESSES } from '../accounts/shapes.ts'
import { type AllowedCallers, entriesAllow, isBoundToAddresses } from './authenticator.ts'
import type { CallerAddress, CallerAddressStore } from './caller-address-store.ts'

const DESCRIPTION_LENGTH_MAX = 255
const api = operationsOf({ tag: 'Account', auth: { area: 'keys' } })
const ADDRESS = wordParam('IP address or CIDR network', addressOf, {
  required: true,
  missing: 'IP address can not be blank',
})
const DESCRIPTION = parsedParam('Free text', descriptionOf)
const FORCE = flagParam('Also if the calling address can then call no more', { default: false })
const LISTED = { 200: CALLER_ADDRESSES } as const

interface CallerAddressParts {
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
    api.get('/v2/ip_whitelist', {
      id: 'listCallerAddresses',
      summary: 'List the addresses that API keys and SMTP logins may be used from',
      answers: LISTED,
      handler: ({ caller }) => listOf(caller),
    }),
    api.post('/v2/ip_whitelist', {
      id: 'addCallerAddress',
      audit: { subject: ['address'], given: ['address', 'description'] },
      summary: 'Allow an address or network to call; with the first one all others are refused',
      params: { address: ADDRESS, description: DESCRIPTION, force: FORCE },
      answers: LISTED,
      async handler({ input, caller, remoteAddress }) {
        const { force, ...entry } = input()
        if (!force) await refuseLockout(parts, caller, remoteAddress, (entries) => [...entries, entry])
        await stored.add(caller.accountId, entry, Math.floor(clock.now()))
        allowed.changed()
        return listOf(caller)
      },
    }),
    api.put('/v2/ip_whitelist', {
      id: 'changeCallerAddress',
      audit: { subject: ['address'], given: ['address', 'description'] },
      summary: 'Change the description of an address',
      params: { address: ADDRESS, description: DESCRIPTION },
      answers: LISTED,
      async handler({ input, caller }) {
        await stored.describe(caller.accountId, input())
        return listOf(caller)
      },
    }),
    api.delete('/v2/ip_whitelist', {
      id: 'removeCallerAddress',
      audit: { subject: ['address'], given: ['address'] },
      summary: 'Remove an address; without any, every address may call',
      params: { address: ADDRESS, force: FORCE },
      answers: LISTED,
      async handler({ input, caller, remoteAddress }) {
        const { address, force } = input()
        const without = (entries: readonly CallerAddress[]) =>
          entries.filter((entry) => entry.address !== address)
        if (!force) await refuseLockout(parts, caller, remoteAddress, without)
        await stored.remove(caller.accountId, address)
        allowed.changed()
        return listOf(caller)
      },
    }),
  ]
}

/** @throws BadRequest if the change would shut out the address that it comes from */
async function refuseLockout(
  { stored, accounts }: CallerAddressParts,
  caller: Caller,
  address: string,
  change: (entries: readonly CallerAddress[]) => readonly CallerAddress[],
): Promise<void> {
  if (!isBoundToAddresses(caller)) return
  const own = change(await stored.list(caller.accountId))
  const parentId = own.length > 0 ? null : ((await accounts.byId(caller.accountId))?.parentId ?? null)
  const effective = parentId === null ? own : await stored.list(parentId)
  if (!entriesAllow(effective, address)) throw new BadRequest('the change would block your own address')
}

/** @throws BadRequest */
function addressOf(text: string): string {
  const address = canonicalCidr(text)
  if (address === null) throw new BadRequest('Invalid IP Address or CIDR')
  return address
}

/** @throws BadRequest */
function descriptionOf(params: Params, name: string): string {
  const description = params.given(name) ?? ''
  if (description.length > DESCRIPTION_LENGTH_MAX) throw invalidFormat(name, description)
  return description
}
