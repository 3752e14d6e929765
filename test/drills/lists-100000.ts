/**
 * A list of 100,000 members, with the service as a separate process and a sink for its mail: 100 calls add the members,
 * one post is sent to the list address, and every subscribed member gets exactly one copy of the one stored
 * message. Every tenth member is unsubscribed and gets none.
 */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

export const title =
  'A list of 100,000 members: upload in 100 calls, one post, one copy for each subscribed member'

const CALLS = 100
const PER_CALL = 1_000
const MEMBERS = CALLS * PER_CALL
const isSubscribed = (member: number) => member % 10 !== 9
const COPIES = Array.from({ length: MEMBERS }, (_, n) => n).filter(isSubscribed).length
const UPLOAD_AIM_MS = 60_000
const ACCEPTANCE_AIM_MS = 1_000
/** After this time without a copy, something is stuck. */
const SILENCE_MAX_MS = 60_000
/** Superfluous copies would arrive within this time of the last one expected. */
const AFTERWARDS_MS = 2_000

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink({ host: ownAddress() })
  const env = { SENDWRIGHT_DATA: folder, SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  try {
    const service = await startProcess(ownAddress(), env)
    try {
      const address = `all@${service.domain}`
      await upload(service, address, report)
      await postToAll(service, sink, address, report)
    } finally {
      await service.end('SIGTERM')
    }
    await judgeRows(folder, report)
  } finally {
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function call(service: ServiceProcess, path: string, form?: Record<string, string>) {
  const response = await fetch(service.url + path, {
    method: form ? 'POST' : 'GET',
    headers: { authorization: AUTHORIZATION },
    ...(form && { body: new URLSearchParams(form) }),
  })
  assert.equal(response.status, 200)
  return response.json()
}

async function upload(service: ServiceProcess, address: string, report: DrillReport): Promise<void> {
  await call(service, '/v3/lists', { address })
  const startedAt = performance.now()
  for (let at = 0; at < CALLS; at++) {
    const members = Array.from({ length: PER_CALL }, (_, place) => {
      const n = at * PER_CALL + place
      return { address: addressOf(n), name: `Member ${n}`, vars: { number: n }, subscribed: isSubscribed(n) }
    })
    await call(service, `/v3/lists/${address}/members.json`, { members: JSON.stringify(members) })
  }
  report.figure('100 calls answered', Math.round(performance.now() - startedAt), 'ms')
  const count = async () => {
    const { list } = (await call(service, `/v3/lists/${address}`)) as { list: { members_count: number } }
    return list.members_count
  }
  while ((await count()) < MEMBERS) await sleep(50)
  const tookMs = Math.round(performance.now() - startedAt)
  report.figure('all members in the list', tookMs, 'ms')
  report.figure('RSS after the upload', await residentMb(service), 'MB')
  assert.ok(tookMs < UPLOAD_AIM_MS, `the upload took ${tookMs} ms, aim ${UPLOAD_AIM_MS}`)
}

const addressOf = (member: number) => `m${member}@example.org`

async function postToAll(
  service: ServiceProcess,
  sink: Sink,
  address: string,
  report: DrillReport,
): Promise<void> {
  const startedAt = performance.now()
  await call(service, `/v3/${service.domain}/messages`, {
    from: `news@${service.domain}`,
    to: address,
    subject: 'To all',
    text: `Dear %recipient_name%, your number is %recipient.number%.\n${'x'.repeat(1_000)}`,
  })
  const acceptedMs = Math.round(performance.now() - startedAt)
  report.figure('post accepted', acceptedMs, 'ms')
  const received = await receiveAll(sink, report)
  const tookS = (received.at - startedAt) / 1000
  report.figure('all copies delivered', tookS.toFixed(1), 's')
  report.figure('deliveries', Math.round(COPIES / tookS), '/s')
  report.figure('RSS after the last delivery', await residentMb(service), 'MB')
  report.figure('peak RSS', await residentMb(service, 'VmHWM'), 'MB')
  const expected = Array.from({ length: MEMBERS }, (_, n) => n).filter(isSubscribed)
  const missing = expected.filter((n) => !received.copies.has(addressOf(n)))
  const twice = [...received.copies].filter(([, count]) => count > 1)
  assert.deepEqual(
    [missing.length, twice.length],
    [0, 0],
    `without a copy: ${missing.slice(0, 5)}; twice: ${twice.slice(0, 5)}`,
  )
  assert.equal(received.copies.size, COPIES, 'nobody else got a copy')
  assert.ok(acceptedMs < ACCEPTANCE_AIM_MS, `acceptance took ${acceptedMs} ms, aim ${ACCEPTANCE_AIM_MS}`)
}

/** Copies by recipient, and when the last one expected had arrived. The sink's memory is emptied meanwhile. */
async function receiveAll(
  sink: Sink,
  report: DrillReport,
): Promise<{ copies: Map<string, number>; at: number }> {
  const copies = new Map<string, number>()
  let total = 0
  let lastAt = performance.now()
  let doneAt: number | null = null
  while (doneAt === null || performance.now() - doneAt < AFTERWARDS_MS) {
    await sleep(100)
    sink.commands.splice(0)
    for (const { envelope, raw } of sink.messages.splice(0)) {
      const [recipient = ''] = envelope.to
      const number = /^m(\d+)@/.exec(recipient)?.[1]
      assert.ok(raw.includes(`Member ${number}, your number is ${number}.`), `the text of ${recipient}`)
      copies.set(recipient, (copies.get(recipient) ?? 0) + envelope.to.length)
      lastAt = performance.now()
      total++
      if (total % 20_000 === 0) report.note(`${total} copies received`)
    }
    if (total >= COPIES) doneAt ??= lastAt
    if (performance.now() - lastAt > SILENCE_MAX_MS) throw new Error(`only ${total} of ${COPIES} copies came`)
  }
  return { copies, at: doneAt }
}

/** The contents of the database once the process has ended. */
async function judgeRows(folder: string, report: DrillReport): Promise<void> {
  const store = await openSqlite(folder)
  try {
    const messages = await store.db.selectFrom('messages').select('id').execute()
    assert.equal(messages.length, 1, 'the post is stored once')
    const expansion = await store.db.selectFrom('list_expansions').selectAll().executeTakeFirstOrThrow()
    assert.deepEqual([expansion.state, Number(expansion.copies)], ['done', COPIES])
    report.figure('a delivery row for everyone', expansion.updated_at - expansion.created_at, 'ms')
    const rows = await store.db
      .selectFrom('deliveries')
      .select((of) => ['state', of.fn.countAll<number>().as('count')])
      .groupBy('state')
      .execute()
    assert.deepEqual(
      rows.map(({ state, count }) => [state, Number(count)]),
      [['delivered', COPIES]],
    )
  } finally {
    await store.close()
  }
}

async function residentMb({ child }: ServiceProcess, field: 'VmRSS' | 'VmHWM' = 'VmRSS'): Promise<number> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
  return Math.round(Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024)
}
