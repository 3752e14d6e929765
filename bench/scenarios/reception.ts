/** Mail received over SMTP and posted to an HTTP endpoint: by a route of ours, by Postfix with a pipe to curl. */
import { makeContent } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import { ensurePeers } from '../support/postfix.ts'
import type { Section } from '../support/results.ts'
import { alternate, oursReceiving, postfixPosting, SESSIONS, tableOf } from '../support/systems.ts'
import { amountsOf, CONTENT_BYTES, ourName } from './e2e.ts'

const PEER = 'Postfix, pipe to curl'
/** Postfix posts a few hundred in a second. */
const MESSAGES = 5_000
/** Both servers warm up: ours is compiled, and Postfix starts its daemons. */
const WARM_UP = 3_000

export async function run(options: Options): Promise<Section> {
  ensurePeers()
  const content = makeContent(CONTENT_BYTES)
  const usual = amountsOf(options, MESSAGES)
  const count = Math.min(WARM_UP, usual.warmUp.count)
  const amounts = { ...usual, warmUp: { ...usual.warmUp, count } }
  const candidates = [
    ...options.databases.map((database) =>
      oursReceiving(ourName(database, 'raw form'), database, content, 'raw'),
    ),
    ...options.databases.map((database) =>
      oursReceiving(ourName(database, 'parsed form'), database, content, 'parsed'),
    ),
    postfixPosting(PEER, content),
  ]
  const measured = await alternate(options.folder, candidates, options.runs, amounts, 'http-sink.ts')
  return {
    title: 'Reception, 10 KB messages posted to an HTTP endpoint',
    notes: [
      `${amounts.measured.count} messages over ${SESSIONS} sessions that stay open, the same bytes for all; from the first acceptance to the last post at the endpoint, which responds at once. Before, each system has had ${count}.`,
      'Ours checks SPF, DKIM, DMARC and ARC (its name server does not answer), evaluates a route, stores the message with its events before the 250, and signs each post. Postfix checks nothing, keeps no message, and starts a process for each.',
      'Both post at most 20 at once to one host, as they are installed.',
      "CPU and memory: of the whole process tree, the database server's included, without load generator and endpoint.",
    ],
    bars: [],
    tables: [tableOf(measured, [PEER])],
    raw: measured,
  }
}
