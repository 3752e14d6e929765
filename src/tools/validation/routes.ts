/** Validation of single addresses over HTTP (validation.md section 1). */

import { PassingMap } from '../../base/flow/cache.ts'
import { BadRequest, Forbidden, NotFound, TooManyRequests } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import type { AccountDirectory, Feature } from '../../people/accounts/account-directory.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import { flagParam, type InputOf, wordParam } from '../../platform/http/request/inputs.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { usageStatements } from '../../watching/metrics/usage.ts'
import { RESULT, type ValidationResult } from './shapes.ts'
import { usageOf } from './usage.ts'
import type { Validator } from './validator.ts'

interface SingleRouteParts extends Pick<Core, 'store' | 'clock'> {
  accounts: Pick<AccountDirectory, 'byId'>
  validator: Validator
  /** Lookups of an account at once, in this process; null: no limit. */
  lookupsMax: number | null
}

const ADDRESS_LENGTH_MAX = 512

/** validation.md section 4. @throws Forbidden */
export async function requireFeatures(
  accounts: Pick<AccountDirectory, 'byId'>,
  { accountId }: Caller,
  features: readonly Feature[],
): Promise<void> {
  const account = await accounts.byId(accountId)
  const missing = account && features.find((name) => !account.features[name])
  if (missing) throw new Forbidden(undefined, { why: `the account does not have the feature ${missing}` })
}

const PARAMS = {
  address: wordParam('At most 512 characters', shortAddress, {
    required: true,
    missing: "'address' parameter is required",
  }),
  provider_lookup: flagParam(
    'Ask the receiving server if nothing else decides and the operator has switched that on',
    { in: 'query', default: true },
  ),
}

function shortAddress(text: string): string {
  if (text.length > ADDRESS_LENGTH_MAX) throw new BadRequest('address is too long')
  return text
}

/** Pictures of a mail in mail programs are not made: no test exists. Clients of the public API ask for them (section 5). */
const emailPreview = operation({
  method: 'GET',
  path: '/v1/preview/tests/{test_id}/results',
  id: 'getEmailPreviewResults',
  tag: 'Validation',
  summary: 'Results of an email preview; none are made, so there is none',
  auth: { area: 'validation', access: 'read' },
  answers: { 404: 'preview test not found' },
  handler: () => Promise.reject(new NotFound('preview test not found')),
})

interface Call {
  input(): InputOf<typeof PARAMS>
  caller: Caller
  signal: AbortSignal
}

export function singleRoutes(parts: SingleRouteParts): Operation[] {
  const validate = createSingle(parts)
  const common = {
    path: '/v4/address/validate',
    tag: 'Validation',
    auth: { area: 'validation', access: 'read', publicKey: true },
    params: PARAMS,
    answers: { 200: RESULT },
    beforeBody: ({ caller }: { caller: Caller }) => requireFeatures(parts.accounts, caller, ['validations']),
    handler: ({ input, caller, signal }: Call) => validate(input(), caller, signal),
  } as const
  return [
    operation({ ...common, method: 'GET', id: 'validateAddress', summary: 'Validate an address' }),
    operation({
      ...common,
      method: 'POST',
      id: 'validateAddressOfForm',
      summary: 'Validate an address given in the body',
    }),
    emailPreview,
  ]
}

function createSingle({ store, clock, validator, lookupsMax }: SingleRouteParts) {
  const running = new PassingMap<string, number>()

  return async (
    { address, provider_lookup: providerLookup }: InputOf<typeof PARAMS>,
    caller: Caller,
    signal: AbortSignal,
  ): Promise<ValidationResult> => {
    const { accountId } = caller
    const before = running.get(accountId) ?? 0
    if (lookupsMax !== null && before >= lookupsMax) throw new TooManyRequests(1)
    running.set(accountId, before + 1)
    try {
      const options = { providerLookup, network: true, asksServers: true, signal }
      const [result] = await validator.validate(accountId, [address], options)
      signal.throwIfAborted()
      const ways = ['single', ...(caller.kind === 'public' ? (['public'] as const) : [])] as const
      const counts = usageOf([result as ValidationResult], ways)
      await store.commit(usageStatements(accountId, clock.now(), counts))
      return caller.kind === 'public'
        ? withoutHistory(result as ValidationResult)
        : (result as ValidationResult)
    } finally {
      const left = (running.get(accountId) ?? 1) - 1
      if (left > 0) running.set(accountId, left)
      else running.delete(accountId)
    }
  }
}

/** For whoever reads the key in a web page: not when a person was mailed, and what they opened (decision 100). */
function withoutHistory({ last_seen: _, engagement: __, ...shown }: ValidationResult): ValidationResult {
  return shown
}
