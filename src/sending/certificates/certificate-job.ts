/**
 * Orders certificates in the background: first ones, renewals, and retries. An order is claimed in the database, so
 * only one node makes it; a claim whose process died expires. DNS is checked before the authority is contacted: an
 * order for a host that does not point here can only fail, and counts against the authority's limits.
 */

import { newId } from '../../base/ids.ts'
import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { CertificateRow, Flag } from '../../platform/store/schema.ts'
import type { IssueOutcome, Issuer } from '../../protocols/acme/order.ts'
import { POLICY_LABEL } from '../domains/dns/dns-records.ts'
import type { Domain } from '../domains/domain.ts'
import { isValid, nextOrderAt, recordOrder, renewAt, retryAt } from './certificate-state.ts'
import { type CertificateStore, isOwnRow, type OrderResult } from './certificate-store.ts'
import type { LeadsHere } from './certificates.ts'

interface CertificateJobParts extends Pick<Core, 'domains' | 'clock' | 'log' | 'random'> {
  certificates: CertificateStore
  issuer: Issuer
  leadsHere: LeadsHere
  /** Names of the service that certificates are ordered for. */
  ownHosts: ReadonlySet<string>
  /** Why an order for a name of the service can only fail, by DNS; null: it may succeed. */
  ownHostFault(host: string): Promise<string | null>
  /** Called when another certificate is in use. */
  changed(host: string): void
}

const LOOK_EVERY_MS = MINUTE_MS
/** Concurrent orders; each mostly waits for the authority. */
const CONCURRENT = 4
/** Well over the five minutes that an order may take. */
const CLAIM_MS = 15 * MINUTE_MS
/** The authority asks within seconds; it may ask again from other networks. */
const CHALLENGE_MS = HOUR_MS
const DNS_FAULT = 'invalid CNAME record: the host does not lead to this server.'
const INTERNAL_FAULT = 'The order failed for a reason inside this server; its log says more.'

export function createCertificateJob(parts: CertificateJobParts): Job {
  const { certificates, issuer, domains, clock, log, random } = parts
  const inProgress = new Set<Promise<void>>()
  let stopping: AbortSignal | null = null
  const now = () => Math.floor(clock.now())
  const job = createJob({
    name: 'certificates',
    everyMs: LOOK_EVERY_MS,
    // Each process claims orders of its own.
    scope: 'claims',
    async work(signal) {
      stopping = signal
      const free = CONCURRENT - inProgress.size
      for (const row of free > 0 ? await certificates.due(now(), free, [...parts.ownHosts]) : []) {
        if (signal.aborted) return
        await start(row, signal)
      }
    },
  })

  /** Claims the order and runs it concurrently with the others; when it ends the next one can start. */
  async function start(row: CertificateRow, signal: AbortSignal): Promise<void> {
    const before = JSON.parse(row.orders_json) as number[]
    const orders = recordOrder(before, now())
    if (orders === null) return certificates.postpone(row, nextOrderAt(before, now()))
    const claim = newId()
    if (!(await certificates.claim(row, { claim, now: now(), claimMs: CLAIM_MS, orders }))) return
    const order = run(row, claim, signal)
      .catch((error: unknown) => log.error({ err: error, host: row.host }, 'cannot store a certificate'))
      .finally(() => {
        inProgress.delete(order)
        job.wake()
      })
    inProgress.add(order)
  }

  async function run(row: CertificateRow, claim: string, signal: AbortSignal): Promise<void> {
    const { host } = row
    const domain = await domains.byId(row.domain_id)
    const isOwn = isOwnRow(row)
    if (domain === null && !isOwn) return certificates.remove(host, claim)
    const outcome = await attempt(row, domain, signal)
    await certificates.withdraw(host, now())
    if (outcome === null) {
      // Interrupted by a stop: due at once for the next process.
      await certificates.settle(host, claim, {})
      return
    }
    // A former tracking host that points elsewhere now is no longer needed.
    const isFormer = domain !== null && !isUsed(domain, host.slice(0, host.indexOf('.')))
    if (outcome.kind === 'failed' && isFormer && !isValid(row, now())) return certificates.remove(host, claim)
    const result = outcome.kind === 'issued' ? issued(outcome) : failed(row, outcome)
    if (!(await certificates.settle(host, claim, result))) return
    if (outcome.kind === 'issued') {
      parts.changed(host)
      log.info({ host, until: new Date(outcome.expiresAt).toISOString() }, 'certificate issued')
    } else {
      log.warn({ host, why: outcome.why, attempts: result.attempts }, 'no certificate')
    }
  }

  /** Without an answer from DNS nothing is known: the authority will check for itself. `domain` null: an own name. */
  async function dnsFault(host: string, domain: Domain | null): Promise<string | null> {
    if (domain === null) return parts.ownHostFault(host)
    return (await parts.leadsHere(domain, host)) === 'no' ? DNS_FAULT : null
  }

  /** Null: the service is stopping. */
  async function attempt(
    { host }: CertificateRow,
    domain: Domain | null,
    signal: AbortSignal,
  ): Promise<IssueOutcome | null> {
    try {
      const fault = await dnsFault(host, domain)
      if (fault !== null) return { kind: 'failed', why: fault, retryAfterMs: 0 }
      const publish = (token: string, answer: string) =>
        certificates.publish({ token, host, answer, endsAt: now() + CHALLENGE_MS })
      return await issuer.issue(host, publish, signal)
    } catch (error) {
      if (signal.aborted) return null
      log.error({ err: error, host }, 'an order for a certificate failed')
      return { kind: 'failed', why: INTERNAL_FAULT, retryAfterMs: 0 }
    }
  }

  function issued({ chain, key, expiresAt }: Extract<IssueOutcome, { kind: 'issued' }>): OrderResult {
    return {
      chain,
      key_sealed: certificates.sealKey(key),
      expires_at: expiresAt,
      issued_at: now(),
      error: null,
      due_at: renewAt(now(), expiresAt, random()),
      attempts: 0,
      requested: 0,
    }
  }

  function failed(
    row: CertificateRow,
    { why, retryAfterMs }: Extract<IssueOutcome, { kind: 'failed' }>,
  ): OrderResult {
    const attempts = row.attempts + 1
    const isOwn = isOwnRow(row)
    const dueAt = retryAt(row, { attempts, retryAfterMs, now: now(), random: random(), isOwn })
    return { error: why, due_at: dueAt, attempts, requested: 0 as Flag }
  }

  return {
    name: job.name,
    scope: job.scope,
    runElsewhere: (wake) => job.runElsewhere(wake),
    wake: () => job.wake(),
    start: (context) => job.start(context),
    report: () => job.report(),
    async stop() {
      await job.stop()
      // Orders received the same signal and end at once.
      if (stopping?.aborted) await Promise.all(inProgress)
    },
  }
}

/** Whether a first label stands for the domain's present tracking host, or for that of its MTA-STS policy. */
export const isUsed = ({ webPrefix, mtaSts }: Domain, label: string): boolean =>
  label === webPrefix || (label === POLICY_LABEL && mtaSts !== 'off')
