/**
 * Asks the receiving server whether it would take mail for an address, off by default (validation.md section 2 rules 5
 * and 9): MAIL with the empty sender, RCPT for the address and then for one that cannot exist, and no message.
 *
 * Receivers dislike being asked. So one server is asked at most once in 10 seconds by all processes together, and what it
 * said is kept for a week; a domain that takes every address is not asked again about another one.
 */

import { createGate } from '../../base/flow/gate.ts'
import { randomHex } from '../../base/ids.ts'
import type { Cidr } from '../../base/net/ip.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { Judge } from '../../mail/deliver/attempt/outcome.ts'
import { removeRows } from '../../platform/store/commits.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { findMailHosts } from '../../protocols/dns/mx.ts'
import { connectSmtp } from '../../protocols/smtp/client.ts'
import { SmtpFailure } from '../../protocols/smtp/failure.ts'
import type { SmtpReply } from '../../protocols/smtp/reply.ts'
import type { ValidAddress } from './address.ts'
import type { ProbeResult } from './verdict.ts'

export type SmtpProbe = ReturnType<typeof createSmtpProbe>

interface ProbeParts extends Pick<Core, 'store' | 'resolver' | 'clock' | 'random'> {
  /** Networks that mail hosts may be in although they are not public. */
  allow: readonly Cidr[]
  judge: Judge
  /** For EHLO. */
  hostname: string
  port: number
}

const INTERVAL_MS = 10_000
const KEPT_MS = 7 * DAY_MS
/** An answer that decides nothing, such as that of a greylisting server, or none at all. */
const UNKNOWN_KEPT_MS = HOUR_MS
/** Longest dialogue; the caller of the API waits for it. */
const DEADLINE_MS = 20_000
const STEP_MS = 10_000
/** Connections of one process. */
const OPEN_MAX = 8
/** Further probes are `unknown` at once. */
const WAITING_MAX = 100

export function createSmtpProbe(parts: ProbeParts) {
  const { store, resolver, clock } = parts
  const gate = createGate(OPEN_MAX, WAITING_MAX)

  async function known({ key, domain }: ValidAddress): Promise<ProbeResult | null> {
    const rows = await store.db
      .selectFrom('validation_probes')
      .select('result')
      .where('key', 'in', [addressRow(key), domainRow(domain)])
      .where('until_at', '>', Math.floor(clock.now()))
      .execute()
    return (rows[0]?.result as ProbeResult | undefined) ?? null
  }

  async function askServer(address: ValidAddress): Promise<ProbeResult | 'busy'> {
    const signal = AbortSignal.timeout(DEADLINE_MS)
    const found = await findMailHosts(resolver, address.domain, { ...parts, signal }).catch(() => null)
    const host = found?.kind === 'hosts' ? found.hosts[0] : undefined
    const target = host?.addresses[0]
    if (!host || !target) return 'unknown'
    if (!(await takeTurn(store, host.exchange, Math.floor(clock.now())))) return 'busy'
    return dialogue(parts, target.address, address, signal)
  }

  return {
    /** Never rejects for what the network does: then the result is `unknown`. */
    async ask(address: ValidAddress): Promise<ProbeResult> {
      const before = await known(address)
      if (before) return before
      if (!(await gate.enter())) return 'unknown'
      try {
        const result = await askServer(address)
        if (result === 'busy') return 'unknown'
        await store.commit([keep(address, result, Math.floor(clock.now()))])
        return result
      } finally {
        gate.leave()
      }
    },
  }
}

async function dialogue(
  parts: ProbeParts,
  host: string,
  { key, domain }: ValidAddress,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const { clock, port, hostname, judge } = parts
  const nobody = `${randomHex(12)}@${domain}`
  try {
    const connection = await connectSmtp({
      ...{ host, port, heloName: hostname, tls: 'none', verify: false, signal, clock },
      timeouts: {
        connect: STEP_MS,
        greeting: STEP_MS,
        ehlo: STEP_MS,
        mail: STEP_MS,
        rcpt: STEP_MS,
        quit: 1_000,
      },
    })
    try {
      const [first, second] = await connection.tryRecipients([key, nobody])
      if (!first) return 'unknown'
      if (!isAccepted(first)) return refusalMeaning(judge, first, key)
      return second && isAccepted(second) ? 'catch-all' : 'accepted'
    } finally {
      await connection.quit()
    }
  } catch (error) {
    if (error instanceof SmtpFailure) return 'unknown'
    throw error
  }
}

const isAccepted = ({ code }: SmtpReply) => code >= 200 && code < 300

/** Servers refuse strangers for many reasons: only a refusal of the mailbox says something about the address. */
function refusalMeaning(judge: Judge, { code, enhanced, text }: SmtpReply, key: string): ProbeResult {
  if (code < 500) return 'unknown'
  const failure = { code, enhanced, message: text, description: '' }
  const { suppression } = judge(failure, { recipients: [key], senders: [] }, true)
  return suppression === 'hard' ? 'no-mailbox' : 'unknown'
}

const addressRow = (key: string) => `address ${key}`
const domainRow = (domain: string) => `domain ${domain}`

const UPSERT = `INSERT INTO validation_probes (key, result, until_at) VALUES (?, ?, ?)
  ON CONFLICT (key) DO UPDATE SET result = excluded.result, until_at = excluded.until_at`

function keep({ key, domain }: ValidAddress, result: ProbeResult, now: number): Statement {
  const keptMs = result === 'unknown' ? UNKNOWN_KEPT_MS : KEPT_MS
  return {
    sql: UPSERT,
    values: [result === 'catch-all' ? domainRow(domain) : addressRow(key), result, now + keptMs],
  }
}

/** False: the server was asked less than 10 seconds ago, by any process. */
async function takeTurn(store: Store, exchange: string, now: number): Promise<boolean> {
  const sql = `${UPSERT} WHERE validation_probes.until_at <= ?`
  const values = [`server ${exchange}`, 'turn', now + INTERVAL_MS, now]
  const [result] = await store.commit([{ sql, values }])
  return result?.affected === 1
}

/** Removes what is over. */
export function removeOldProbes(store: Store, now: number, signal: AbortSignal): Promise<void> {
  const over = { where: 'until_at <= ? ORDER BY until_at', values: [Math.floor(now)] }
  return removeRows(store, { from: 'validation_probes', key: 'key', ...over }, signal)
}
