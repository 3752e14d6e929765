/** Validation of single addresses over HTTP (validation.md section 1). */
import type { AccountDirectory, Feature } from '../accounts/account-directory.ts'
import type { Clock } from '../base/clock.ts'
import { BadRequest, Forbidden, NotFound, TooManyRequests } from '../base/errors.ts'
import { PassingMap } from '../base/passing.ts'
import type { Caller } from '../http/auth.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import { usageStatements } from '../metrics/usage.ts'
import type { Store } from '../store/store.ts'
import { usageOf } from './usage.ts'
import type { Validator } from './validator.ts'
import type { ValidationResult } from './verdict.ts'

export interface SingleRouteParts {
  store: Store
  accounts: Pick<AccountDirectory, 'byId'>
  clock: Clock
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
  if (account && features.some((name) => !account.features[name])) throw new Forbidden()
}

const PARAMS: readonly ParamDoc[] = [
  { name: 'address', type: 'string', description: 'At most 512 characters', required: true },
  {
    name: 'provider_lookup',
    type: 'boolean',
    in: 'query',
    description: 'Ask the receiving server if nothing else decides and the operator has switched that on',
    default: true,
  },
]

/** Pictures of a mail in mail programs are not made: no test exists. Clients of the public API ask for them (section 5). */
const emailPreview = operation({
  method: 'GET',
  path: '/v1/preview/tests/{test_id}/results',
  id: 'getEmailPreviewResults',
  tag: 'Validation',
  summary: 'Results of an email preview; none are made, so there is none',
  auth: { area: 'validation', access: 'read' },
  params: [],
  responses: { 404: { description: 'preview test not found' } },
  handler: () => Promise.reject(new NotFound('preview test not found')),
})

export function singleRoutes(parts: SingleRouteParts): Operation[] {
  const validate = createSingle(parts)
  const common = {
    path: '/v4/address/validate',
    tag: 'Validation',
    auth: { area: 'validation', access: 'read', publicKey: true },
    params: PARAMS,
    responses: { 200: { description: 'What is known of the address' } },
    beforeBody: ({ caller }: { caller: Caller }) => requireFeatures(parts.accounts, caller, ['validations']),
    handler: ({ params, caller, signal }: { params: Params; caller: Caller; signal: AbortSignal }) =>
      validate(params, caller, signal),
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

  return async (params: Params, caller: Caller, signal: AbortSignal): Promise<ValidationResult> => {
    const address = params.required('address', "'address' parameter is required")
    if (address.length > ADDRESS_LENGTH_MAX) throw new BadRequest('address is too long')
    const providerLookup = params.boolean('provider_lookup') ?? true
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
