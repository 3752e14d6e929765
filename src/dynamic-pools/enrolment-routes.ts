/** How domains enter and leave dynamic pools, over HTTP (dynamic-pools.md section 2, operations 1 to 4, 11, 13 and 14). */

import { ACCOUNT_ID } from '../accounts/account-directory.ts'
import type { Clock } from '../base/clock.ts'
import { BadRequest, NotFound } from '../base/errors.ts'
import { quotable } from '../base/values.ts'
import type { Caller } from '../http/auth.ts'
import { type Operation, operation } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import { ipsOf } from '../ips/pools/routes.ts'
import type { Store } from '../store/store.ts'
import { assignableDomains } from './assignable.ts'
import { BANDS, type Band, fractionOf, isBand, ratePpm } from './bands.ts'
import type { BulkEnrolment } from './bulk-enrolment.ts'
import { type LookupParts, reachableDomain } from './domain-lookup.ts'
import type { Check, Enrolments } from './enrolments.ts'
import { READ, SUCCESS, TAG, WRITE } from './pool-routes.ts'
import { checkParent } from './pool-rules.ts'

const ENROLMENT = '/v3/domains/{name}/dynamic_pools' as const
const OVERRIDE = '/v1/dynamic_pools/domains/{name}/override' as const

export interface EnrolmentRouteParts extends LookupParts {
  store: Store
  clock: Clock
  enrolments: Enrolments
  bulk: BulkEnrolment
  wakeChecks(): void
}

/** As history names a requestor. */
const requestorOf = ({ userId, keyId }: Caller): string => userId ?? keyId

export function enrolmentRoutes(parts: EnrolmentRouteParts): Operation[] {
  return [...domainRoutes(parts), ...allRoutes(parts), ...bandRoutes(parts)]
}

function domainRoutes(parts: EnrolmentRouteParts): Operation[] {
  const { enrolments } = parts
  return [
    operation({
      method: 'POST',
      path: ENROLMENT,
      id: 'enrollDomain',
      audit: { action: 'dynamic-pool-domain.enroll' },
      tag: TAG,
      summary: 'Enroll a domain in the dynamic pools',
      auth: WRITE,
      params: [{ name: 'replacement_ip', type: 'string', repeated: true, description: 'Ignored' }],
      responses: {
        200: { description: 'It sends from the pool of its band' },
        400: { description: 'It is enrolled already, or the pools are not configured' },
      },
      async handler({ path, caller }) {
        await enrolments.enrol(await reachableDomain(parts, caller, path.name), requestorOf(caller))
        return SUCCESS
      },
    }),
    operation({
      method: 'DELETE',
      path: ENROLMENT,
      id: 'replaceDomainIps',
      audit: {
        action: 'dynamic-pool-domain.remove',
        given: ['replacement_ip', 'replacement_pool_id'],
      },
      tag: TAG,
      summary: 'Remove a domain from the dynamic pools and give it other addresses',
      auth: WRITE,
      params: [
        {
          name: 'replacement_ip',
          type: 'string',
          repeated: true,
          description: 'Dedicated addresses in no pool, or `shared`',
        },
        { name: 'replacement_pool_id', type: 'string', description: 'Pool to link instead' },
      ],
      responses: { 200: { description: 'It sends from these' } },
      async handler({ params, path, caller }) {
        const domain = await reachableDomain(parts, caller, path.name)
        const replacement = {
          ips: ipsOf(params, ['replacement_ip']),
          poolId: params.text('replacement_pool_id'),
        }
        await enrolments.leave(domain, replacement, requestorOf(caller))
        return SUCCESS
      },
    }),
  ]
}

function allRoutes(parts: EnrolmentRouteParts): Operation[] {
  const { accounts, bulk } = parts

  async function accountOf(caller: Caller, subaccountId: string | undefined): Promise<string> {
    if (subaccountId === undefined) return caller.accountId
    const account = ACCOUNT_ID.test(subaccountId) ? await accounts.byId(subaccountId) : null
    if (account?.parentId !== caller.accountId || account.status === 'closed')
      throw new NotFound('subaccount not found')
    return account.id
  }

  return [
    operation({
      method: 'GET',
      path: '/v3/domains/dynamic_pools/assignable',
      id: 'listAssignableDomains',
      tag: TAG,
      summary: 'List domains that are not enrolled in dynamic pools',
      auth: READ,
      params: [
        { name: 'subaccount_id', type: 'string', description: 'Those of a subaccount instead' },
        { name: 'domain', type: 'string', description: 'Regular expression that a part of the name matches' },
      ],
      responses: { 200: { description: 'At most 1000 domains by name; disabled ones are left out' } },
      async handler({ params, caller, signal }) {
        const accountId = await accountOf(caller, params.text('subaccount_id'))
        const found = await assignableDomains(parts, accountId, params.text('domain'), signal)
        return { items: found.map(({ id, name }) => ({ account_id: accountId, id, name })) }
      },
    }),
    operation({
      method: 'POST',
      path: '/v3/domains/all/dynamic_pools/enroll',
      id: 'enrollAllDomains',
      audit: { action: 'dynamic-pool-domain.enroll-all' },
      tag: TAG,
      summary: 'Enroll all domains in the dynamic pools',
      auth: { ...WRITE, only: 'parent' },
      params: [
        {
          name: 'include_subaccounts',
          type: 'boolean',
          description: 'Those of subaccounts as well',
          default: false,
        },
      ],
      responses: { 200: { description: 'Begun in the background, or in progress already' } },
      async handler({ params, caller }) {
        await checkParent(accounts, caller.accountId)
        const withSubaccounts = params.boolean('include_subaccounts') ?? false
        await bulk.start(caller.accountId, withSubaccounts, requestorOf(caller))
        return { message: 'started' }
      },
    }),
  ]
}

function bandRoutes(parts: EnrolmentRouteParts): Operation[] {
  const { enrolments } = parts
  return [
    operation({
      method: 'GET',
      path: '/v1/dynamic_pools/domains/{name}/preview',
      id: 'previewDomainBand',
      tag: TAG,
      summary: 'Check a domain without a change: the pool that its figures put it in',
      auth: READ,
      rateLimit: 'analytics',
      params: [],
      responses: { 200: { description: 'The pool, and each figure with its band' } },
      handler: async ({ path, caller }) =>
        checkView(await enrolments.check(await reachableDomain(parts, caller, path.name))),
    }),
    operation({
      method: 'PUT',
      path: OVERRIDE,
      id: 'setDomainBand',
      audit: { action: 'dynamic-pool-override.set' },
      tag: TAG,
      summary: 'Keep a domain in a pool, whatever its checks say',
      auth: WRITE,
      params: [{ name: 'pool', type: 'string', required: true, description: 'Band', values: BANDS }],
      responses: { 200: { description: 'It stays there' }, 400: { description: 'It is not enrolled' } },
      async handler({ params, path, caller }) {
        const domain = await reachableDomain(parts, caller, path.name)
        await enrolments.pin(domain, readBand(params), requestorOf(caller))
        return SUCCESS
      },
    }),
    operation({
      method: 'DELETE',
      path: OVERRIDE,
      id: 'deleteDomainBand',
      audit: { action: 'dynamic-pool-override.delete' },
      tag: TAG,
      summary: 'Let the checks decide about a domain again',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'It is checked within minutes' } },
      async handler({ path, caller }) {
        const domain = await reachableDomain(parts, caller, path.name)
        if (await enrolments.unpin(domain)) parts.wakeChecks()
        return SUCCESS
      },
    }),
  ]
}

/** @throws BadRequest in the form of section 6 */
function readBand(params: Params): Band {
  const band = params.required('pool')
  if (isBand(band)) return band
  const extra = { message: 'invalid pool name' }
  throw new BadRequest(quotable(band), { form: 'Field', field: 'pool', extra })
}

function checkView({ figures, verdict }: Check) {
  const { processed, bounced, delivered, complained } = figures
  const { band, bands } = verdict
  const rate = (count: number, of: number) => fractionOf(ratePpm(count, of)) ?? 0
  return {
    pool: band,
    results: {
      bounce_rate: { value: rate(bounced, processed), band: bands.bounceRate },
      complaint_rate: { value: rate(complained, delivered), band: bands.complaintRate },
      processed_count: { value: processed, band: bands.processed },
    },
  }
}
