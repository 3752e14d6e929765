/**
 * MTA-STS policies of domains whose mail comes here (RFC 8461): the file at `https://mta-sts.<domain>/.well-known/mta-sts.txt`,
 * the certificate that it is served with, and how far both are.
 */
import { sql } from 'kysely'
import { NotFound } from '../../base/process/errors.ts'
import { integer, media, named, nullable, oneOf, text } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { textReply } from '../../platform/http/answer/reply.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import { hostName } from '../../platform/http/request/origin.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { Store } from '../../platform/store/store.ts'
import {
  checkOf,
  type DnsTargets,
  hostedPolicy,
  POLICY_LABEL,
  type RecordPurpose,
  type StoredCheck,
  validity,
  wantedRecords,
} from '../domains/dns/dns-records.ts'
import { readDnsState } from '../domains/dns/verification.ts'
import { type Domain, domainOfRow } from '../domains/domain.ts'
import { MTA_STS_MODES } from '../domains/fields.ts'
import { ownDomain } from '../domains/names/directory.ts'
import { isProven } from '../domains/names/name-owner.ts'
import { statusOf } from './certificate-state.ts'
import type { CertificateStore } from './certificate-store.ts'

interface PolicyParts extends Pick<Core, 'store' | 'domains' | 'clock'> {
  certificates: CertificateStore
  targets: DnsTargets
}

const LOOK_EVERY_MS = 5 * MINUTE_MS
/** Hosts that get their first certificate in one run; the authority bounds their orders further. */
const HOSTS_PER_RUN = 100
/** Domains looked at in one run, most of which do not lead here. */
const ROWS_PER_RUN = 1_000
const PREFIX = `${POLICY_LABEL}.`

const VALID = (of: string) => oneOf(`Whether DNS had ${of} at the last check`, ['valid', 'unknown'])
const HOSTED_POLICY = named('HostedPolicy', 'The MTA-STS policy that is published for a domain', {
  mode: oneOf('As the setting `mta_sts` of the domain', MTA_STS_MODES),
  max_age: integer('Seconds for which senders keep it', { example: 604_800 }),
  url: text('Where senders fetch it', { example: 'https://mta-sts.example.com/.well-known/mta-sts.txt' }),
  policy: nullable(text('The file; null: off')),
  id: nullable(text('Its id in the record; null: off')),
  host_record: VALID('the record of the host'),
  policy_record: VALID('the record with this id'),
  mx_records: VALID('each of the mail hosts as MX'),
  certificate: nullable(
    oneOf('State of the certificate of the host; null: none was ordered yet', [
      'processing',
      'active',
      'expired',
      'error',
    ]),
  ),
  certificate_error: nullable(text('Why the last order failed; null: it did not')),
})

export function policyRoutes(parts: PolicyParts): Operation[] {
  const { domains, targets } = parts
  return [
    operation({
      method: 'GET',
      path: '/.well-known/mta-sts.txt',
      id: 'readPublishedPolicy',
      tag: 'Tracking host',
      summary: 'The MTA-STS policy of the domain whose mta-sts host is asked',
      auth: 'public',
      answers: { 200: media('text/plain', 'The policy'), 404: 'No policy is published under this host' },
      async handler({ headers }) {
        const host = hostName(headers.host) ?? ''
        const domain = host.startsWith(PREFIX) ? await domains.byName(host.slice(PREFIX.length)) : null
        const policy = domain && isProven(domain) ? hostedPolicy(domain, targets) : null
        if (policy === null) throw new NotFound()
        return textReply(policy.text)
      },
    }),
    operation({
      method: 'GET',
      path: '/sendwright/v1/domains/{name}/mta-sts',
      id: 'readHostedPolicy',
      tag: 'Domains',
      rateLimit: 'domains',
      summary: 'The MTA-STS policy of a domain, its records and its certificate',
      auth: { area: 'domains', access: 'read' },
      answers: { 200: HOSTED_POLICY },
      async handler({ path, caller }) {
        return viewOf(parts, await ownDomain(domains, caller, path.name))
      },
    }),
  ]
}

async function viewOf({ store, certificates, targets, clock }: PolicyParts, domain: Domain) {
  const host = PREFIX + domain.name
  const policy = hostedPolicy(domain, targets)
  const { checks } = await readDnsState(store, domain)
  const row = await certificates.find(host)
  const isOurs = row !== null && row.domain_id === domain.id
  return {
    mode: domain.mtaSts,
    max_age: domain.mtaStsMaxAge,
    url: `https://${host}/.well-known/mta-sts.txt`,
    policy: policy?.text ?? null,
    id: policy?.id ?? null,
    host_record: validityOf(domain, targets, checks, 'mta-sts-host'),
    policy_record: validityOf(domain, targets, checks, 'mta-sts'),
    mx_records: validityOf(domain, targets, checks, 'mx'),
    certificate: isOurs ? statusOf(row, clock.now()) : null,
    certificate_error: isOurs ? row.error : null,
  }
}

function validityOf(
  domain: Domain,
  targets: DnsTargets,
  checks: readonly StoredCheck[],
  purpose: RecordPurpose,
): 'valid' | 'unknown' {
  const wanted = wantedRecords(domain, targets).filter((record) => record.purpose === purpose)
  const isValid = wanted.length > 0 && wanted.every((record) => checkOf(record, checks)?.valid === true)
  return validity({ valid: isValid })
}

/** Orders the first certificate of a policy's host once the last check of its record found that it leads here. */
export function policyCertificateJob({
  store,
  clock,
  config,
  certificates,
  orders,
}: {
  store: Store
  clock: Clock
  config: { dnsTargets: DnsTargets }
  certificates: CertificateStore
  orders: Pick<Job, 'wake'>
}): Job {
  /** Where the last run ended, so that domains that do not lead here hold up none after them. */
  let after = ''
  return createJob({
    name: 'policy-certificates',
    everyMs: LOOK_EVERY_MS,
    scope: 'database',
    async work(signal) {
      const rows = await store.db
        .selectFrom('domains as d')
        .innerJoin('domain_dns as n', 'n.domain_id', 'd.id')
        .leftJoin('certificates as c', (join) => join.on('c.host', '=', sql<string>`${PREFIX} || d.name`))
        .selectAll('d')
        .select('n.checks_json')
        .where('d.mta_sts', '<>', 'off')
        .where('d.verified', '=', 1)
        .where('n.checks_json', 'like', '%"mta-sts-host"%')
        .where('c.host', 'is', null)
        .where('d.id', '>', after)
        .orderBy('d.id')
        .limit(ROWS_PER_RUN)
        .execute()
      let added = 0
      for (const { checks_json, ...row } of rows) {
        if (signal.aborted || added === HOSTS_PER_RUN) break
        after = row.id
        const domain = domainOfRow(row, clock.now())
        const checks = JSON.parse(checks_json) as StoredCheck[]
        if (validityOf(domain, config.dnsTargets, checks, 'mta-sts-host') !== 'valid') continue
        const { id: domainId, accountId } = domain
        await certificates.add({
          host: PREFIX + domain.name,
          accountId,
          domainId,
          now: Math.floor(clock.now()),
        })
        added++
      }
      // All were looked at: the next run begins with the first again.
      if (rows.length < ROWS_PER_RUN && (rows.at(-1)?.id ?? after) === after) after = ''
      if (added > 0) orders.wake()
    },
  })
}
