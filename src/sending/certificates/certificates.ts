/** Certificates of tracking hosts as their owners see them (tracking.md K5-K7, rules 23, 24). */

import { BadRequest, Conflict, NotFound, TooManyRequests } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { CertificateRow } from '../../platform/store/schema.ts'
import type { Domain } from '../domains/domain.ts'
import { isClaimed, isValid, statusOf } from './certificate-state.ts'
import { type CertificateStore, isOwnRow } from './certificate-store.ts'
import type { TRACKING_CERTIFICATE } from './shapes.ts'

export interface CertificateParts extends Pick<Core, 'domains' | 'clock'> {
  certificates: CertificateStore
  leadsHere: LeadsHere
  /** False: no certificate authority is configured. */
  canOrder: boolean
  /** Starts the job that makes the orders. */
  wake(): void
}

/** Whether DNS points a tracking host of the domain to us, queried now. */
export type LeadsHere = (domain: Domain, host: string) => Promise<'yes' | 'no' | 'unanswered'>

const NO_AUTHORITY =
  'x509 certificates are not issued by this server: SENDWRIGHT_HTTPS_PORT and SENDWRIGHT_ACME_DIRECTORY are not set'

/** K5. @throws NotFound for a host that is not the account's, or was never requested */
export async function readCertificate(
  parts: CertificateParts,
  accountId: string,
  host: string,
): Promise<Of<typeof TRACKING_CERTIFICATE>> {
  const { row, name } = await knownHost(parts, accountId, host)
  if (row === null)
    throw new NotFound(`Please initiate x509 key pair generation at POST /v2/x509/${name}`, DESCRIPTION)
  const status = statusOf(row, parts.clock.now())
  return { status, error: row.error, ...(status !== 'processing' && { certificate: row.chain }) }
}

/** K6: the first order, or a new attempt after a failed one. @throws NotFound, Conflict, BadRequest */
export async function requestCertificate(parts: CertificateParts, accountId: string, host: string) {
  const { domain, row, name } = await knownHost(parts, accountId, host)
  const now = Math.floor(parts.clock.now())
  const exists = () =>
    new Conflict(`x509 key pair generation has already been initiated for ${name}`, DESCRIPTION)
  if (row !== null && (row.chain !== null || isPending(row, now))) throw exists()
  await checkOrderable(parts, domain, name)
  const taken =
    row === null
      ? await parts.certificates.add({ host: name, accountId, domainId: domain.id, now })
      : await parts.certificates.request(name, now)
  if (!taken) throw exists()
  parts.wake()
}

/** K7: for an expired one. @throws NotFound, TooManyRequests, Conflict, BadRequest */
export async function renewCertificate(parts: CertificateParts, accountId: string, host: string) {
  const { domain, row, name } = await knownHost(parts, accountId, host)
  const now = Math.floor(parts.clock.now())
  const isRunning = () =>
    new TooManyRequests(
      RETRY_SECONDS,
      `x509 key pair generation job is already in progress for ${name}`,
      DESCRIPTION,
    )
  if (row !== null && isPending(row, now)) throw isRunning()
  if (row === null || row.chain === null) throw notFound()
  if (isValid(row, now))
    throw new Conflict(
      `x509 certificate is still valid until ${goTime(row.expires_at as number)}`,
      DESCRIPTION,
    )
  await checkOrderable(parts, domain, name)
  if (!(await parts.certificates.request(name, now))) throw isRunning()
  parts.wake()
}

const DESCRIPTION = { form: 'Description' } as const
/** An order normally takes seconds. */
const RETRY_SECONDS = 10

const notFound = () => new NotFound('x509 cert not found', DESCRIPTION)

/** A background renewal counts too: a second order would only use up the authority's limits. */
const isPending = (row: CertificateRow, now: number) => row.requested === 1 || isClaimed(row, now)

/** @throws BadRequest */
async function checkOrderable(parts: CertificateParts, domain: Domain, host: string): Promise<void> {
  if (!parts.canOrder) throw new BadRequest(NO_AUTHORITY, { form: 'Reason' })
  if ((await parts.leadsHere(domain, host)) !== 'yes')
    throw new BadRequest('invalid CNAME record', { form: 'Reason' })
}

/**
 * The tracking host of one of the account's domains: the present one, or a former one that still has a certificate,
 * since links in sent mail point there. @throws NotFound for any other
 */
async function knownHost(parts: CertificateParts, accountId: string, host: string) {
  const name = host.toLowerCase()
  const dot = name.indexOf('.')
  const domain = dot > 0 ? await parts.domains.byName(name.slice(dot + 1)) : null
  if (domain === null || domain.accountId !== accountId || domain.name !== name.slice(dot + 1))
    throw notFound()
  const found = await parts.certificates.find(name)
  const row = found !== null && isOwnRow(found) ? null : found
  if (row === null && domain.webPrefix !== name.slice(0, dot)) throw notFound()
  return { domain, row: row?.domain_id === domain.id ? row : null, name }
}

/** In the contract's form: `2027-02-10 23:00:00 +0000 UTC`. */
const goTime = (ms: number) => `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} +0000 UTC`

/** Named individually in the system report; further ones are counted. */
const FAULTS_NAMED_MAX = 5
const FAULTS_COUNTED_MAX = 1_000
/** Renewals begin 30 days before expiry; if they have failed for half of that, the operator should look. */
export const ENDS_SOON_MS = 14 * DAY_MS
/** Hosts whose certificate ended longer ago are unused; renewal has been given up. */
const ENDED_SHOWN_MS = 30 * DAY_MS

export interface EndingCertificate {
  host: string
  /** Unix milliseconds; may be past. */
  expiresAt: number
  /** Why the last renewal failed; null: it did not. */
  error: string | null
  /** A certificate of the service itself, not of a tracking host. */
  isOwn: boolean
}

/** Hosts whose certificate ends soon, or ended a while ago; the next to end first. */
export async function endingCertificates(
  certificates: CertificateStore,
  now: number,
): Promise<EndingCertificate[]> {
  const [from, to] = [Math.floor(now) - ENDED_SHOWN_MS, Math.floor(now) + ENDS_SOON_MS]
  const rows = await certificates.ending(from, to, FAULTS_COUNTED_MAX)
  return rows.map((row) => ({
    host: row.host,
    error: row.error,
    expiresAt: row.expires_at as number,
    isOwn: isOwnRow(row),
  }))
}

/** Problems of certificates, one sentence each for the operator; `count` is at most a thousand. */
export async function certificateFaults(
  certificates: CertificateStore,
  now: number,
): Promise<{ count: number; faults: readonly string[] }> {
  const rows = await certificates.faults(Math.floor(now) + ENDS_SOON_MS, FAULTS_COUNTED_MAX)
  const faults = rows.slice(0, FAULTS_NAMED_MAX).map((row) => {
    const end = row.expires_at === null ? '' : `, ends ${new Date(row.expires_at).toISOString().slice(0, 10)}`
    return `${row.host} (${statusOf(row, now)}${end}${row.error === null ? '' : `: ${row.error}`})`
  })
  return { count: rows.length, faults }
}
