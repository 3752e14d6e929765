/**
 * The receiver of webhooks is down while messages are sent and the service is killed repeatedly; then it
 * returns. The ledger has the events that the API lists, the receiver every event id to which it responded 200.
 * (Seven hours pass in the tests, where the clock is advanced by hand; here the processes are real.)
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'

export const title = 'R39: no webhook is lost while its receiver is down and the process is killed'

const KILLS = 10
const SENDS_PER_LIFE = 20
/** More retries than the drill's seconds. */
const SCHEDULE = Array.from({ length: 120 }, () => '1s').join(',')
const ARRIVAL_MAX_MS = 60_000

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const receiver = await createReceiver({ host: ownAddress(), answer: 503 })
  const host = ownAddress()
  const env = {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_WEBHOOK_SCHEDULE: SCHEDULE,
  }
  let service = await startProcess(host, env)
  try {
    await post(service, `/v3/domains/${service.domain}/webhooks`, { id: 'accepted', url: receiver.url })
    let sent = 0
    for (let kill = 1; kill <= KILLS; kill++) {
      for (let n = 0; n < SENDS_PER_LIFE; n++) if (await send(service)) sent++
      await sleep(Math.random() * 1_500)
      // During every other process the receiver is down completely.
      if (kill % 2 === 0) await receiver.close()
      await service.end('SIGKILL')
      if (kill % 2 === 0) await receiver.listen()
      service = await startProcess(host, env)
      report.note(`kill ${kill}: ${sent} sent, ${receiver.posts.length} posts refused`)
    }
    const refused = receiver.posts.splice(0).length
    receiver.answer = 200
    judge(await acceptedIds(service), await arrivals(receiver, sent), { sent, refused }, report)
  } finally {
    await service.end('SIGKILL')
    await receiver.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function post(service: ServiceProcess, path: string, fields: Record<string, string>): Promise<boolean> {
  const answer = await fetch(service.url + path, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: new URLSearchParams(fields),
  })
  return answer.ok
}

const send = (service: ServiceProcess) =>
  post(service, `/v3/${service.domain}/messages`, {
    from: `sender@${service.domain}`,
    to: 'alice@example.org',
    subject: 'drill',
    text: 'drill',
  })

/** Ids of all accepted events, page by page. */
async function acceptedIds(service: ServiceProcess): Promise<Set<string>> {
  const ids = new Set<string>()
  let url = `${service.url}/v3/${service.domain}/events?event=accepted&limit=300`
  for (;;) {
    const answer = await fetch(url, { headers: { authorization: AUTHORIZATION } })
    const { items, paging } = (await answer.json()) as {
      items: { id: string; event: string }[]
      paging: { next?: string }
    }
    for (const item of items) if (item.event === 'accepted') ids.add(item.id)
    if (items.length === 0 || !paging.next) return ids
    url = paging.next
  }
}

/** How often each event id arrived, once `expected` different ones have. */
async function arrivals(receiver: Receiver, expected: number): Promise<Map<string, number>> {
  const until = performance.now() + ARRIVAL_MAX_MS
  for (;;) {
    const counts = new Map<string, number>()
    for (const { body } of receiver.posts) {
      const id = body['event-data'].id as string
      counts.set(id, (counts.get(id) ?? 0) + 1)
    }
    if (counts.size >= expected || performance.now() > until) return counts
    await sleep(100)
  }
}

function judge(
  accepted: Set<string>,
  counts: Map<string, number>,
  { sent, refused }: { sent: number; refused: number },
  report: DrillReport,
): void {
  const lost = [...accepted].filter((id) => !counts.has(id))
  report.figure('kills', KILLS)
  report.figure('messages sent', sent)
  report.figure('accepted events', accepted.size)
  report.figure('posts refused before', refused)
  report.figure('webhooks that arrived', counts.size)
  report.figure('lost', lost.length)
  report.figure(
    'repeated',
    [...counts.values()].reduce((sum, count) => sum + count - 1, 0),
  )
  assert.ok(counts.size >= sent, 'fewer webhooks than messages')
  assert.deepEqual(lost, [], 'webhooks were lost')
}
