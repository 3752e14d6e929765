/** Sending domains over HTTP (domains.md D1-D6 and D12; own-operations.md section 6). */
import { NotFound } from '../../base/process/errors.ts'
import { media, message } from '../../base/shape.ts'
import { textReply } from '../../platform/http/answer/reply.ts'
import { type Limiter, limitExceeded } from '../../platform/http/limits/rate-limit.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { flagParam } from '../../platform/http/request/inputs.ts'
import { createDomain } from './create-domain.ts'
import { type DeletionParts, deleteDomain } from './deletion.ts'
import type { OwnRecordLooks } from './dns/own-record-looks.ts'
import { readDnsState, type VerificationParts, verifyDomain } from './dns/verification.ts'
import { zoneText } from './dns/zone.ts'
import type { Domain } from './domain.ts'
import { LIST_PARAMS, listDomains } from './domain-list.ts'
import { ownDomain } from './names/directory.ts'
import { createInputs, updateInputs } from './settings.ts'
import { DOMAIN_CHANGED, DOMAIN_DNS, DOMAIN_LIST, DOMAIN_READ } from './shapes.ts'
import { type UpdateParts, updateDomain } from './update-domain.ts'
import { domainView, explainedRecords, recordStates, recordViews, serviceFaults } from './view.ts'

export interface DomainRouteParts extends UpdateParts, VerificationParts, DeletionParts {
  limiter: Limiter
  ownRecords: Pick<OwnRecordLooks, 'last' | 'look'>
  /** Base URL of the service. */
  publicUrl: string
  maxMessageTtlSeconds: number
  /** Starts the job that removes what belonged to a deleted domain. */
  wakeDeletion(): void
}

const api = operationsOf({ tag: 'Domains', auth: { area: 'domains' }, rateLimit: 'domains' })

const DELETING = 'Domain will be deleted in the background'

/** Settings whose values the audit log records; the others are either harmless by type, or secret. */
const RECORDED = [
  'web_prefix',
  'archive_to',
  'mailfrom_host',
  'dkim_host_name',
  'dkim_selector',
  'ips',
  'pool_id',
]

const READ_PARAMS = {
  'h:extended': flagParam('Adds dkim_host, mailfrom_host, pod; default false'),
  'h:with_dns': flagParam('With the DNS records; default true'),
  extended: flagParam('The same as h:extended'),
  with_dns: flagParam('The same as h:with_dns'),
}

export function domainRoutes(parts: DomainRouteParts): Operation[] {
  return [...readRoutes(parts), ...writeRoutes(parts), ...ownRoutes(parts)]
}

function readRoutes(parts: DomainRouteParts): Operation[] {
  return [
    api.get('/v4/domains', {
      aliases: ['/v3/domains'],
      id: 'listDomains',
      summary: 'List sending domains',
      params: LIST_PARAMS,
      answers: { 200: DOMAIN_LIST },
      handler: ({ input, caller }) => listDomains(parts.store, caller.accountId, input(), parts.clock.now()),
    }),
    api.get('/v4/domains/{name}', {
      aliases: ['/v3/domains/{name}'],
      id: 'readDomain',
      summary: 'Read a sending domain',
      params: READ_PARAMS,
      answers: { 200: DOMAIN_READ },
      async handler({ input, path, caller }) {
        const { 'h:extended': extended, 'h:with_dns': withDns, ...given } = input()
        const domain = await ownDomain(parts.domains, caller, path.name)
        return {
          domain: await domainViewOf(parts, domain, extended ?? given.extended),
          ...((withDns ?? given.with_dns ?? true) && (await recordsOf(parts, domain))),
        }
      },
    }),
  ]
}

function writeRoutes(parts: DomainRouteParts): Operation[] {
  const create = (version: 'v3' | 'v4') =>
    api.post(`/${version}/domains`, {
      id: version === 'v4' ? 'createDomain' : 'createDomainV3',
      audit: { action: 'domain.create', subject: ['name'], given: RECORDED },
      summary: 'Add a sending domain',
      params: createInputs(parts.maxMessageTtlSeconds),
      answers: { 200: DOMAIN_CHANGED },
      handler: async ({ input, caller }) =>
        answerWith(parts, await createDomain(parts, caller, input()), 'Domain DNS records have been created'),
    })
  return [
    create('v4'),
    create('v3'),
    api.put('/v4/domains/{name}', {
      aliases: ['/v3/domains/{name}'],
      id: 'updateDomain',
      audit: { given: RECORDED },
      summary: 'Change settings of a domain',
      params: updateInputs(parts.maxMessageTtlSeconds),
      answers: { 200: DOMAIN_CHANGED },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        return answerWith(parts, await updateDomain(parts, domain, input()), 'Domain has been updated')
      },
    }),
    api.put('/v4/domains/{name}/verify', {
      aliases: ['/v3/domains/{name}/verify'],
      id: 'verifyDomain',
      summary: 'Look up the records of a domain now and set its state',
      answers: { 200: DOMAIN_CHANGED },
      async handler({ path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const grant = await parts.limiter.take('domain-verify', domain.id)
        if (grant && !grant.allowed) throw limitExceeded('domain-verify', grant.retrySeconds, domain.name)
        const [after] = await Promise.all([verifyDomain(parts, domain, 'by-caller'), parts.ownRecords.look()])
        if (!after) throw new NotFound('Domain not found')
        return answerWith(parts, after, 'Domain DNS records have been updated')
      },
    }),
    api.delete('/v3/domains/{name}', {
      aliases: ['/v4/domains/{name}'],
      id: 'deleteDomain',
      summary: 'Delete a domain and, in the background, what belongs to it',
      answers: { 200: message(DELETING, 'The domain is no longer visible') },
      async handler({ path, caller }) {
        await deleteDomain(parts, await ownDomain(parts.domains, caller, path.name))
        parts.wakeDeletion()
        return { message: DELETING }
      },
    }),
  ]
}

function ownRoutes(parts: DomainRouteParts): Operation[] {
  return [
    api.get('/sendwright/v1/domains/{name}/zone', {
      id: 'readDomainZone',
      summary: 'All DNS records of a domain as zone-file text',
      answers: { 200: media('text/plain', 'Zone-file text') },
      async handler({ path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const dns = await readDnsState(parts.store, domain)
        const states = recordStates(domain, dns, parts.targets)
        return textReply(zoneText(domain.name, states, parts.targets, parts.publicUrl))
      },
    }),
    api.get('/sendwright/v1/domains/{name}/dns', {
      id: 'explainDomainDns',
      summary: 'What DNS returned for each record at the last check, and what to change',
      answers: { 200: DOMAIN_DNS },
      async handler({ path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const dns = await readDnsState(parts.store, domain)
        return {
          ...explainedRecords(recordStates(domain, dns, parts.targets), dns, parts.targets),
          service: serviceFaults(parts.ownRecords.last()),
        }
      },
    }),
  ]
}

async function answerWith(parts: DomainRouteParts, domain: Domain, message: string) {
  return { message, domain: await domainViewOf(parts, domain), ...(await recordsOf(parts, domain)) }
}

async function recordsOf(parts: DomainRouteParts, domain: Domain) {
  return recordViews(recordStates(domain, await readDnsState(parts.store, domain), parts.targets))
}

async function domainViewOf({ store }: DomainRouteParts, domain: Domain, isExtended = false) {
  const account = await store.db
    .selectFrom('accounts')
    .select('parent_id')
    .where('id', '=', domain.accountId)
    .executeTakeFirst()
  return domainView(domain, { isSubaccounts: Boolean(account?.parent_id), isExtended, pod: store.pod })
}
