/** Calls with 1,000 recipients, each with variables, compared with single messages of the same size. */
import { batchFields, makeContent, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import type { Section } from '../support/results.ts'
import { formatNumber } from '../support/stats.ts'
import { alternate, ours, tableOf } from '../support/systems.ts'
import { amountsOf, CONTENT_BYTES, ourName } from './e2e.ts'

const RECIPIENTS = 1_000
const RECIPIENTS_SHORT = 100
/** Calls in flight: one program sends a newsletter, one call after the other. */
const CONNECTIONS = 2
const RATIO_MIN = 1.2

export async function run(options: Options): Promise<Section> {
  const content = makeContent(CONTENT_BYTES)
  const recipients = options.short ? RECIPIENTS_SHORT : RECIPIENTS
  const single = amountsOf(options)
  const calls = (count: number) => Math.max(1, Math.round(count / recipients))
  const batches = {
    warmUp: { count: calls(single.warmUp.count), firstNumber: 90_000_000 },
    restMs: single.restMs,
    measured: { count: calls(single.measured.count), firstNumber: 0 },
  }
  const candidates = options.databases.flatMap((database) => [
    ours(ourName(database, 'single'), database, ({ domain }) => singleFields(domain, content)),
    {
      ...ours(
        ourName(database, `batches of ${recipients}`),
        database,
        ({ domain }) => batchFields(domain, content, recipients),
        { recipients, connections: CONNECTIONS },
      ),
      amounts: batches,
    },
  ])
  const measured = await alternate(options.folder, candidates, options.runs, single)
  const ratios = options.databases.map((database, at) => ({
    database,
    ratio: (measured[2 * at + 1]?.perSecond ?? Number.NaN) / (measured[2 * at]?.perSecond ?? Number.NaN),
  }))
  return {
    title: `Batches of ${formatNumber(recipients)} recipients`,
    notes: [
      `${batches.measured.count} calls, ${CONNECTIONS} in flight; 10 KB for each recipient, each mail with a name of its own in subject, text and HTML.`,
      'A batch is accepted at once: its end to end time begins with the answer to the first call.',
    ],
    bars: ratios.map(({ database, ratio }) => ({
      what: `deliveries/s of batches against single messages, ${ourName(database)}`,
      bar: `at least ${RATIO_MIN} ×`,
      seen: `${formatNumber(ratio, 2)} ×`,
      held: ratio >= RATIO_MIN,
    })),
    tables: [tableOf(measured)],
    raw: measured,
  }
}
