/** End to end with 20 rewritten links and a pixel, compared with the same mail without tracking. */
import { startSink } from '../support/flow.ts'
import { makeContent, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import type { Section } from '../support/results.ts'
import { withRig } from '../support/rig.ts'
import { startService } from '../support/service.ts'
import { formatNumber } from '../support/stats.ts'
import { alternate, type Fields, ours, tableOf } from '../support/systems.ts'
import { amountsOf, CONTENT_BYTES, ourName } from './e2e.ts'

const LINKS = 20
const SHARE_MIN = 0.7
const TRACKED: Fields = [
  ['o:tracking', 'yes'],
  ['o:tracking-opens', 'yes'],
  ['o:tracking-clicks', 'yes'],
]

export async function run(options: Options): Promise<Section> {
  const content = makeContent(CONTENT_BYTES, LINKS)
  const refusal = await refusalOf(options)
  const what = `tracked against untracked, ${LINKS} links, SQLite`
  const bar = `at least ${SHARE_MIN * 100} %`
  const title = 'Open and click tracking, 10 KB messages with 20 links'
  if (refusal !== null) {
    const notes = ['The service refuses a message that asks for tracking.']
    return { title, notes, bars: [{ what, bar, seen: refusal, held: false }], tables: [], raw: null }
  }
  const candidates = options.databases.flatMap((database) => [
    ours(ourName(database, 'untracked'), database, ({ domain }) => singleFields(domain, content)),
    ours(ourName(database, 'tracked'), database, ({ domain }) => [
      ...singleFields(domain, content),
      ...TRACKED,
    ]),
  ])
  const measured = await alternate(options.folder, candidates, options.runs, amountsOf(options))
  const shares = options.databases.map((database, at) => ({
    database,
    share: (measured[2 * at + 1]?.perSecond ?? Number.NaN) / (measured[2 * at]?.perSecond ?? Number.NaN),
  }))
  return {
    title,
    notes: [`${LINKS} links and a pixel per message; the sink does not look at what became of them.`],
    bars: shares
      .filter(({ database }) => database === 'sqlite')
      .map(({ share }) => ({ what, bar, seen: `${formatNumber(share * 100)} %`, held: share >= SHARE_MIN })),
    tables: [tableOf(measured)],
    raw: { measured, shares },
  }
}

/** The error that refuses a tracked message; null: it is accepted. */
function refusalOf(options: Options): Promise<string | null> {
  return withRig(options.folder, async (rig) => {
    const sink = await startSink(rig)
    const service = await startService(rig, {
      database: 'sqlite',
      env: { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` },
    })
    const form = {
      ...{ from: `sender@${service.domain}`, to: 'r@recipients.example', subject: 'x' },
      ...{ html: '<a href="https://shop.example/">x</a>' },
      ...Object.fromEntries(TRACKED),
    }
    try {
      await service.call('POST', `/v3/${service.domain}/messages`, form)
      return null
    } catch (error) {
      return String(error)
    } finally {
      await service.stop()
    }
  })
}
