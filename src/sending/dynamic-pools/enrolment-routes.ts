/** How domains enter and leave dynamic pools, over HTTP (dynamic-pools.md section 2, operations 1 to 4, 11, 13 and 14). */

import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { quotable } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { ACCOUNT_ID } from '../../people/accounts/account-directory.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { flagParam, otherParam, textParam, wordParam } from '../../platform/http/request/inputs.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { ipsParam } from '../ips/pools/routes.ts'
import { SUCCESS, WRITE } from '../ips/routes.ts'
import { DONE } from '../ips/shapes.ts'
import { assignableDomains } from './assignable.ts'
import { BANDS, type Band, fractionOf, isBand, ratePpm } from './bands.ts'
import type { BulkEnrolment } from './bulk-enrolment.ts'
import { type LookupParts, reachableDomain } from './domain-lookup.ts'
import type { Check, Enrolments } from './enrolments.ts'
import { checkParent } from './pool-rules.ts'
import { ASSIGNABLE, ENROLLING, HEALTH_CHECK } from './shapes.ts'

const api = operationsOf({ tag: 'Dynamic IP pools', auth: { area: 'ips' } })

const ENROLMENT = '/v3/domains/{name}/dynamic_pools' as const
const OVERRIDE = '/v1/dynamic_pools/domains/{name}/override' as const

interface EnrolmentRouteParts extends LookupParts, Pick<Core, 'store' | 'clock'> {
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
    api.post(ENROLMENT, {
      id: 'enrollDomain',
      audit: { action: 'dynamic-pool-domain.enroll' },
      summary: 'Enroll a domain in the dynamic pools',
      params: { replacement_ip: otherParam('Ignored', { repeated: true }) },
      answers: { 200: DONE, 400: 'It is enrolled already, or the pools are not configured' },
      async handler({ path, caller }) {
        await enrolments.enrol(await reachableDomain(parts, caller, path.name), requestorOf(caller))
        return SUCCESS
      },
    }),
    api.delete(ENROLMENT, {
      id: 'replaceDomainIps',
      audit: {
        action: 'dynamic-pool-domain.remove',
        given: ['replacement_ip', 'replacement_pool_id'],
      },
      summary: 'Remove a domain from the dynamic pools and give it other addresses',
      params: {
        replacement_ip: ipsParam('Dedicated addresses in no pool, or `shared`'),
        replacement_pool_id: textParam('Pool to link instead'),
      },
      answers: { 200: DONE },
      async handler({ input, path, caller }) {
        const domain = await reachableDomain(parts, caller, path.name)
        const { replacement_ip: ips, replacement_pool_id: poolId } = input()
        await enrolments.leave(domain, { ips, poolId }, requestorOf(caller))
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
    api.get('/v3/domains/dynamic_pools/assignable', {
      id: 'listAssignableDomains',
      summary: 'List domains that are not enrolled in dynamic pools',
      params: {
        subaccount_id: textParam('Those of a subaccount instead'),
        domain: textParam('Regular expression that a part of the name matches'),
      },
      answers: { 200: ASSIGNABLE, 404: 'No such subaccount' },
      async handler({ input, caller, signal }) {
        const { subaccount_id: subaccountId, domain } = input()
        const accountId = await accountOf(caller, subaccountId)
        const found = await assignableDomains(parts, accountId, domain, signal)
        return { items: found.map(({ id, name }) => ({ account_id: accountId, id, name })) }
      },
    }),
    api.post('/v3/domains/all/dynamic_pools/enroll', {
      id: 'enrollAllDomains',
      audit: { action: 'dynamic-pool-domain.enroll-all' },
      summary: 'Enroll all domains in the dynamic pools',
      auth: { ...WRITE, only: 'parent' },
      params: { include_subaccounts: flagParam('Those of subaccounts as well', { default: false }) },
      answers: { 200: ENROLLING },
      async handler({ input, caller }) {
        await checkParent(accounts, caller.accountId)
        await bulk.start(caller.accountId, input().include_subaccounts, requestorOf(caller))
        return { message: 'started' }
      },
    }),
  ]
}

function bandRoutes(parts: EnrolmentRouteParts): Operation[] {
  const { enrolments } = parts
  return [
    api.get('/v1/dynamic_pools/domains/{name}/preview', {
      id: 'previewDomainBand',
      summary: 'Check a domain without a change: the pool that its figures put it in',
      rateLimit: 'analytics',
      answers: { 200: HEALTH_CHECK },
      handler: async ({ path, caller }) =>
        checkView(await enrolments.check(await reachableDomain(parts, caller, path.name))),
    }),
    api.put(OVERRIDE, {
      id: 'setDomainBand',
      audit: { action: 'dynamic-pool-override.set' },
      summary: 'Keep a domain in a pool, whatever its checks say',
      params: { pool: wordParam('Band', bandOf, { required: true, values: BANDS }) },
      answers: { 200: DONE },
      async handler({ input, path, caller }) {
        const domain = await reachableDomain(parts, caller, path.name)
        await enrolments.pin(domain, input().pool, requestorOf(caller))
        return SUCCESS
      },
    }),
    api.delete(OVERRIDE, {
      id: 'deleteDomainBand',
      audit: { action: 'dynamic-pool-override.delete' },
      summary: 'Let the checks decide about a domain again',
      answers: { 200: DONE },
      async handler({ path, caller }) {
        const domain = await reachableDomain(parts, caller, path.name)
        if (await enrolments.unpin(domain)) parts.wakeChecks()
        return SUCCESS
      },
    }),
  ]
}

/** @throws BadRequest in the form of section 6 */
function bandOf(band: string, field: string): Band {
  if (isBand(band)) return band
  const extra = { message: 'invalid pool name' }
  throw new BadRequest(quotable(band), { form: 'Field', field, extra })
}

function checkView({ figures, verdict }: Check): Of<typeof HEALTH_CHECK> {
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
