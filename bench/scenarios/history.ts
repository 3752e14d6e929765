/**
 * One figure for each release: the CPU of a plain message, end to end, in rounds of a fixed loop that runs in turns with it. The
 * quotient depends less on the machine and on what else runs there than the CPU itself, so drift shows from release to release.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { ASK_LIMIT_MS, measureFlow, startSink } from '../support/flow.ts'
import { startHelper } from '../support/helper-process.ts'
import { makeContent, sendRequest, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import type { Rounds } from '../support/reference-loop.ts'
import type { Section } from '../support/results.ts'
import { withRig } from '../support/rig.ts'
import { startService } from '../support/service.ts'
import { formatNumber, median } from '../support/stats.ts'
import { httpLoad, SESSIONS } from '../support/systems.ts'
import { CONTENT_BYTES } from './e2e.ts'

const AMOUNTS = { warmUp: 20_000, turns: 5, messages: 4_000, rounds: 2_000 }
/** About 20 s: V8 has not compiled all of it yet, so a message takes some percent more. */
const AMOUNTS_SHORT = { warmUp: 3_000, turns: 3, messages: 1_000, rounds: 500 }
const SHOWN = 8

const FILE = join(import.meta.dirname, '../history.json')

export interface Entry {
  version: string
  commit: string
  /** When the commit was made. */
  date: string
  processor: string
  /** CPU microseconds of a message and of a round of the loop. */
  messageUs: number
  roundUs: number
  rounds: number
}

export async function run({ folder, short, out }: Options): Promise<Section> {
  const known = JSON.parse(readFileSync(FILE, 'utf8')) as Entry[]
  const entry = { ...release(), ...(await measure(folder, short ? AMOUNTS_SHORT : AMOUNTS)) }
  const entries = [...known.filter(({ commit }) => commit !== entry.commit), entry]
  if (out !== null) writeFileSync(FILE, fileText(entries))
  return {
    title: 'History: a message in rounds of a fixed loop',
    notes: [
      `10 KB over HTTP, signed, delivered; SQLite. Medians of ${(short ? AMOUNTS_SHORT : AMOUNTS).turns} turns; compare the rounds, not the times.`,
    ],
    bars: [],
    tables: [
      {
        head: ['Version', 'Commit', 'Date', 'Rounds', 'Message, CPU µs', 'Round, CPU µs', 'Processor'],
        rows: entries
          .slice(-SHOWN)
          .map(({ version, commit, date, rounds, messageUs, roundUs, processor }) => [
            ...[version, commit, date, formatNumber(rounds, 2)],
            ...[formatNumber(messageUs, 0), formatNumber(roundUs, 0), processor],
          ]),
      },
    ],
    raw: entry,
  }
}

/** `launcher`: `bin/sendwright` of another version; default: of the sources. */
export async function measure(
  folder: string,
  { warmUp, turns, messages, rounds }: typeof AMOUNTS,
  launcher?: string,
): Promise<Omit<Entry, 'version' | 'commit' | 'date'>> {
  return withRig(folder, async (rig) => {
    const sink = await startSink(rig)
    const reference = startHelper<Rounds, number>(rig, 'reference-loop.ts')
    const service = await startService(rig, {
      database: 'sqlite',
      env: { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` },
      ...(launcher !== undefined && { launcher }),
    })
    const request = sendRequest(service, singleFields(service.domain, makeContent(CONTENT_BYTES)))
    const load = httpLoad(rig, service, request, SESSIONS)
    const system = { roots: service.roots, recipients: 1, load, stop: service.stop }
    await measureFlow(sink, system, { count: warmUp, firstNumber: 90_000_000 })
    await reference.ask({ rounds }, ASK_LIMIT_MS)
    const seen: { messageUs: number; roundUs: number }[] = []
    for (let turn = 0; turn < turns; turn++) {
      const before = await reference.ask({ rounds }, ASK_LIMIT_MS)
      const flow = await measureFlow(sink, system, { count: messages, firstNumber: turn * messages })
      const after = await reference.ask({ rounds }, ASK_LIMIT_MS)
      seen.push({ messageUs: flow.cpuPerThousand * 1_000, roundUs: (before + after) / 2 })
    }
    await service.stop()
    return {
      processor: cpus()[0]?.model.trim() ?? 'unknown',
      messageUs: Math.round(median(seen.map(({ messageUs }) => messageUs))),
      roundUs: Math.round(median(seen.map(({ roundUs }) => roundUs))),
      rounds: Number(median(seen.map(({ messageUs, roundUs }) => messageUs / roundUs)).toFixed(2)),
    }
  })
}

function release(): Pick<Entry, 'version' | 'commit' | 'date'> {
  const root = join(import.meta.dirname, '../..')
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const log = execFileSync('git', ['log', '-1', '--format=%h %cs'], { cwd: root, encoding: 'utf8' })
  const [commit = '', date = ''] = log.trim().split(' ')
  return { version, commit, date }
}

/** One line for each release. */
const fileText = (entries: readonly Entry[]) =>
  `[\n${entries.map((entry) => `  ${JSON.stringify(entry)}`).join(',\n')}\n]\n`
