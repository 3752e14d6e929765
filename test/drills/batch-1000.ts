/**
 * Newsletters of 1,000 recipients with variables in one call: each call is one stored body and 1,000 different mails, its
 * 200 arrives quickly, and memory stays flat over 50 calls, after 30 that fill the caches. A call follows when the mails
 * of the previous one are delivered.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { cpuSeconds, residentBytes, residentPeakBytes } from '../support/process-memory.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

export const title = 'Batches: 50 calls with 1,000 recipients each'

/** Calls until code is compiled and caches are filled; memory is compared from then on. */
const WARM_UP = 30
const CALLS = WARM_UP + 50
const RECIPIENTS = 1_000
const MEDIAN_AIM_MS = 150
/**
 * Rest before memory is read, so that the outcomes of the last mails are written. The collector keeps the heap that it
 * grew under load: live objects stayed at 34 MB over 30 calls, while the heap grew from 107 to 203 MB.
 */
const REST_MS = 5_000
/** Noise of the allocators; a leak of 1 KB a mail would be 50 MB. */
const GROWTH_MAX_MB = 30
const MB = 1_048_576

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink()
  try {
    const service = await startProcess(ownAddress(), {
      SENDWRIGHT_DATA: folder,
      SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
    })
    await callAll(service, sink, report).finally(() => service.end('SIGTERM'))
    await countRows(folder, report)
  } finally {
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function callAll(service: ServiceProcess, sink: Sink, report: DrillReport): Promise<void> {
  const pid = service.child.pid as number
  const waitsMs: number[] = []
  const atRestMb: number[] = []
  let deliveringMs = 0
  const cpuBefore = await cpuSeconds(pid)
  for (let at = 0; at < CALLS; at++) {
    const startedAt = performance.now()
    waitsMs.push(await post(service, newsletter(service.domain, at)))
    await sink.waitFor(RECIPIENTS)
    deliveringMs += performance.now() - startedAt
    checkMails(sink, at)
    sink.messages.length = 0
    sink.commands.length = 0
    if (at + 1 !== WARM_UP && at + 1 !== CALLS) continue
    await sleep(REST_MS)
    atRestMb.push((await residentBytes(pid)) / MB)
  }
  const cpuS = (await cpuSeconds(pid)) - cpuBefore
  const medianMs = median(waitsMs)
  const [early = 0, late = 0] = atRestMb
  report.figure('median time to the 200', medianMs, 'ms')
  report.figure('longest time to the 200', Math.max(...waitsMs), 'ms')
  report.figure('mails delivered', (CALLS * RECIPIENTS * 1_000) / deliveringMs, 'a second')
  report.figure('CPU time of the service', (cpuS * 1e6) / (CALLS * RECIPIENTS), 'us a mail')
  report.figure(`RSS at rest, after ${WARM_UP} calls`, early, 'MB')
  report.figure(`RSS at rest, after ${CALLS} calls`, late, 'MB')
  report.figure('highest RSS', (await residentPeakBytes(pid)) / MB, 'MB')
  assert.ok(late - early < GROWTH_MAX_MB, `memory grew by ${late - early} MB`)
  assert.ok(medianMs < MEDIAN_AIM_MS, `the 200 came after ${medianMs} ms, aim ${MEDIAN_AIM_MS}`)
}

/** Milliseconds until the 200. */
async function post(service: ServiceProcess, body: FormData): Promise<number> {
  const startedAt = performance.now()
  const answer = await fetch(`${service.url}/v3/${service.domain}/messages`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body,
  })
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  return performance.now() - startedAt
}

function newsletter(domain: string, issue: number): FormData {
  const form = new FormData()
  const variables: Record<string, { name: string; n: number; unsubscribe: string }> = {}
  for (let n = 0; n < RECIPIENTS; n++) {
    const address = `reader-${n}@example.org`
    form.append('to', address)
    variables[address] = { name: `Reader ${n}`, n, unsubscribe: `https://blog.example/leave/${issue}/${n}` }
  }
  form.append('from', `News <news@${domain}>`)
  form.append('subject', `Issue ${issue} for %recipient.name%`)
  form.append('text', 'Hello %recipient.name%, you are number %recipient.n%.')
  form.append('html', `<p>Hello %recipient.name%</p>${'<p>What was new this week.</p>'.repeat(300)}`)
  form.append('h:List-Unsubscribe', '<%recipient.unsubscribe%>')
  form.append('recipient-variables', JSON.stringify(variables))
  return form
}

/** Every recipient got one mail, and the right one. */
function checkMails({ messages }: Sink, issue: number): void {
  const mails = new Map(messages.map(({ envelope, raw }) => [envelope.to[0], raw.toString()]))
  assert.deepEqual([messages.length, mails.size], [RECIPIENTS, RECIPIENTS])
  for (let n = 0; n < RECIPIENTS; n++) {
    const raw = mails.get(`reader-${n}@example.org`) ?? ''
    assert.ok(raw.includes(`\r\nSubject: Issue ${issue} for Reader ${n}\r\n`), raw.slice(0, 2_000))
    assert.ok(raw.includes(`you are number ${n}.`))
    assert.ok(raw.includes(`<https://blog.example/leave/${issue}/${n}>`))
  }
}

async function countRows(folder: string, report: DrillReport): Promise<void> {
  const store = await openSqlite(folder)
  try {
    const count = async (table: 'messages' | 'deliveries') => {
      const row = await store.db
        .selectFrom(table)
        .select((of) => of.fn.countAll<number>().as('n'))
        .executeTakeFirst()
      return Number(row?.n)
    }
    const [bodies, deliveries] = [await count('messages'), await count('deliveries')]
    report.figure('bodies stored', bodies)
    report.figure('deliveries', deliveries)
    assert.deepEqual([bodies, deliveries], [CALLS, CALLS * RECIPIENTS])
  } finally {
    await store.close()
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number
