/** The same message bytes over SMTP into ours and into the peers, and the limit of the tools themselves. */
import { makeContent } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import { ensurePeers } from '../support/postfix.ts'
import type { Section } from '../support/results.ts'
import { alternate, oursOverSmtp, postfix, SESSIONS, sinkAlone, tableOf } from '../support/systems.ts'
import { amountsOf, CONTENT_BYTES, ourName, PEER_SIGNED, PEER_UNSIGNED, peerAmountsOf } from './e2e.ts'

export async function run(options: Options): Promise<Section> {
  ensurePeers()
  const content = makeContent(CONTENT_BYTES)
  const candidates = [
    ...options.databases.map((database) => oursOverSmtp(ourName(database, 'submission'), database, content)),
    { ...postfix(PEER_SIGNED, true, content), amounts: peerAmountsOf(options) },
    { ...postfix(PEER_UNSIGNED, false, content), amounts: peerAmountsOf(options) },
    sinkAlone('load straight into the sink', content),
  ]
  const amounts = amountsOf(options)
  const measured = await alternate(options.folder, candidates, options.runs, amounts)
  return {
    title: 'Over SMTP, 10 KB messages',
    notes: [
      `${amounts.measured.count} messages, ${SESSIONS} sessions that stay open (500 messages each), the same bytes for all. Before, ours and the tools alone have had ${amounts.warmUp.count}, Postfix ${peerAmountsOf(options).warmUp.count}.`,
      'Ours is logged in to (AUTH PLAIN), parses each message, and records events; Postfix does neither.',
      'The last row is load generator and sink alone: the ceiling that the tools set on these cores; its CPU is the sink.',
    ],
    bars: [],
    tables: [tableOf(measured, [PEER_SIGNED, PEER_UNSIGNED])],
    raw: measured,
  }
}
