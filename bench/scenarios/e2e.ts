/** End to end over HTTP, compared with Postfix: 10 KB messages, one recipient each, signed with RSA-2048, events recorded. */
import { makeContent, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import { ensurePeers } from '../support/postfix.ts'
import type { Bar, Section } from '../support/results.ts'
import type { Database } from '../support/service.ts'
import { formatNumber } from '../support/stats.ts'
import {
  alternate,
  type Candidate,
  type Measured,
  ours,
  postfix,
  SESSIONS,
  tableOf,
} from '../support/systems.ts'

export const CONTENT_BYTES = 10_000
const MESSAGES = 20_000
const MESSAGES_SHORT = 300
/**
 * Opens connections, fills caches and lets V8 compile: after 2,000 messages the compiler took 8 % of the measured time,
 * after 10,000 still 5 %. The peers have nothing to compile.
 */
const WARM_UP = 20_000
const PEER_WARM_UP = 4_000
const REST_MS = 5_000

const SIGNED_MIN = 4.5
const UNSIGNED_MIN = 2.7
const POSTGRES_MIN_PER_SECOND = 1_000

export const PEER_SIGNED = 'Postfix + OpenDKIM'
export const PEER_UNSIGNED = 'Postfix, unsigned'
const DATABASE_NAMES: Record<Database, string> = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

export const ourName = (database: Database, what = '') =>
  `Sendwright, ${DATABASE_NAMES[database]}${what === '' ? '' : `, ${what}`}`

export function amountsOf({ short, messages }: Options, usual = MESSAGES) {
  const count = messages ?? (short ? MESSAGES_SHORT : usual)
  return {
    warmUp: { count: short ? Math.min(WARM_UP, Math.ceil(count / 2)) : WARM_UP, firstNumber: 90_000_000 },
    restMs: short ? 0 : REST_MS,
    measured: { count, firstNumber: 0 },
  }
}

/** For systems that have nothing to compile. */
export function peerAmountsOf(options: Options) {
  const amounts = amountsOf(options)
  const count = Math.min(PEER_WARM_UP, amounts.warmUp.count)
  return { ...amounts, warmUp: { ...amounts.warmUp, count } }
}

export async function run(options: Options): Promise<Section> {
  ensurePeers()
  const content = makeContent(CONTENT_BYTES)
  const amounts = amountsOf(options)
  const peerAmounts = peerAmountsOf(options)
  const candidates: Candidate[] = [
    ...options.databases.map((database) =>
      ours(ourName(database), database, ({ domain }) => singleFields(domain, content)),
    ),
    { ...postfix(PEER_SIGNED, true, content), amounts: peerAmounts },
    { ...postfix(PEER_UNSIGNED, false, content), amounts: peerAmounts },
  ]
  const measured = await alternate(options.folder, candidates, options.runs, amounts)
  return {
    title: 'End to end, 10 KB messages',
    notes: [
      `${amounts.measured.count} messages from ${SESSIONS} connections; from the first acceptance to the last message at the sink. Before, ours has had ${amounts.warmUp.count}, for the compiler, the peers ${peerAmounts.warmUp.count}.`,
      'Ours takes HTTP (multipart/form-data), the peers SMTP with the same parts on sessions that stay open; all deliver to the same sink as a relay without TLS and login, which offers PIPELINING and CHUNKING (ours uses both, Postfix the first).',
      'Peers as installed by Debian, queue on the same disk; Postfix writes no log here. Load and sink run on the same cores.',
      "CPU: /proc, user and system of the whole process tree with children that were waited for, the database server's included.",
    ],
    bars: barsOf(measured),
    tables: [tableOf(measured, [PEER_SIGNED, PEER_UNSIGNED])],
    raw: measured,
  }
}

function barsOf(measured: readonly Measured[]): Bar[] {
  const rateOf = (name: string) => measured.find((entry) => entry.name === name)?.perSecond ?? Number.NaN
  const bars: Bar[] = []
  const sqlite = rateOf(ourName('sqlite'))
  if (!Number.isNaN(sqlite)) {
    for (const [peer, min] of [
      [PEER_SIGNED, SIGNED_MIN],
      [PEER_UNSIGNED, UNSIGNED_MIN],
    ] as const) {
      const ratio = sqlite / rateOf(peer)
      bars.push({
        what: `10 KB end to end on SQLite, against ${peer}`,
        bar: `at least ${min} ×`,
        seen: `${formatNumber(ratio, 2)} × (${formatNumber(sqlite, 0)}/s to ${formatNumber(rateOf(peer), 0)}/s)`,
        held: ratio >= min,
      })
    }
  }
  const postgres = rateOf(ourName('postgres'))
  if (!Number.isNaN(postgres)) {
    bars.push({
      what: '10 KB end to end on PostgreSQL',
      bar: `at least ${formatNumber(POSTGRES_MIN_PER_SECOND)}/s`,
      seen: `${formatNumber(postgres, 0)}/s`,
      held: postgres >= POSTGRES_MIN_PER_SECOND,
    })
  }
  return bars
}
