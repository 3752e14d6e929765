/** Incoming mail under `kill -9`, beside mail that is sent out; the rig says what is counted. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillReport } from '../../scripts/drill.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { runIncoming } from '../support/incoming-rig.ts'
import { ownAddress } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

export const title = 'incoming mail is stored once and forwarded as one delivery, when the process is killed'

const MAILS = 10_000
const KILLS = 10
const CLIENTS = 8
const OUTGOING_PER_SECOND = 300

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink({ host: ownAddress() })
  const receiver = await createReceiver({ host: ownAddress() })
  const host = ownAddress()
  const env = {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_DNS: '127.0.0.1:9',
  }
  try {
    const { accepted, outgoing, seconds, downSeconds, repeatedForwards, repeatedPosts, ...faults } =
      await runIncoming({
        ...{ host, sink, receiver, start: () => startProcess(host, env), note: report.note },
        ...{ mails: MAILS, kills: KILLS, clients: CLIENTS, outgoingPerSecond: OUTGOING_PER_SECOND },
      })
    report.figure('kills', KILLS)
    report.figure('time, of that down', `${seconds.toFixed(1)}, ${downSeconds.toFixed(1)}`, 's')
    for (const [what, count] of Object.entries({ incoming: accepted, outgoing })) {
      report.figure(`${what} accepted`, count, 'messages')
      report.figure(`${what} accepted`, count / seconds, 'per second, starts included')
      report.figure(`${what} accepted`, count / (seconds - downSeconds), 'per second while it runs')
    }
    report.figure('outgoing offered', OUTGOING_PER_SECOND, 'per second, starts included')
    report.figure('forwards repeated, same delivery', repeatedForwards)
    report.figure('posts repeated', repeatedPosts)
    for (const [fault, ids] of Object.entries(faults)) report.figure(fault, ids.length)
    for (const [fault, ids] of Object.entries(faults)) assert.deepEqual(ids, [], fault)
  } finally {
    await sink.close()
    await receiver.close()
    await rm(folder, { recursive: true, force: true })
  }
}
