/**
 * 200 messages a second, one in twenty with a file stored as a blob, and ten backups one after the other. Each is
 * restored into a separate folder: it passes its checks, starts, and has everything accepted before the backup began.
 */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { runCommand } from '../support/command.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

export const title =
  'R14: ten backups at 200 messages a second: each restored copy is whole, starts, and misses nothing'

const BACKUPS = 10
const PER_SECOND = 200
const LARGE_EVERY = 20
/** Time at that rate before each backup; it continues until the backup is made. Restoring needs no load. */
const WARM_UP_MS = 2_000
const FILE = Buffer.alloc(100_000, 'attached ')
const TEXT = 'x'.repeat(2_000)

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink({ host: ownAddress() })
  const delivery = { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  const env = { SENDWRIGHT_HOST: ownAddress(), SENDWRIGHT_DATA: join(folder, 'data'), ...delivery }
  const service = await startProcess(env.SENDWRIGHT_HOST, env)
  const accepted = new Set<string>()
  const other = ownAddress()
  const rounds: {
    seconds: number
    missing: number
    refused: number
    perSecond: number
    slowestMs: number
  }[] = []
  try {
    for (let number = 1; number <= BACKUPS; number++) {
      const target = join(folder, `backup-${number}`)
      const load = startLoad(service, accepted)
      await sleep(WARM_UP_MS)
      const before = [...accepted]
      const startedAt = performance.now()
      const made = await runCommand(env, 'backup', target, '--with-secret')
      const seconds = (performance.now() - startedAt) / 1000
      const under = await load.stop()
      assert.equal(made.code, 0, made.err)
      const restoredEnv = { ...env, SENDWRIGHT_HOST: other, SENDWRIGHT_DATA: join(folder, `data-${number}`) }
      for (const command of ['verify', 'restore']) {
        const { code, err } = await runCommand(restoredEnv, command, target)
        assert.equal(code, 0, err)
      }
      const copied = messageIds(restoredEnv.SENDWRIGHT_DATA)
      const missing = before.filter((id) => !copied.has(id)).length
      rounds.push({ seconds, missing, ...under })
      report.note(`${number}: ${JSON.stringify(rounds.at(-1))}, ${copied.size} messages`)
      const again = await startProcess(other, restoredEnv)
      await again.end('SIGTERM')
      await rm(restoredEnv.SENDWRIGHT_DATA, { recursive: true })
    }
    const valuesOf = (name: keyof (typeof rounds)[number]) => rounds.map((round) => round[name])
    report.figure('accepted', accepted.size)
    report.figure('least rate sustained', Math.min(...valuesOf('perSecond')), 'messages/s')
    report.figure('refused', Math.max(...valuesOf('refused')))
    report.figure(
      'a whole backup took',
      `${Math.min(...valuesOf('seconds')).toFixed(1)} to ${Math.max(...valuesOf('seconds')).toFixed(1)}`,
      's',
    )
    report.figure('slowest call', Math.max(...valuesOf('slowestMs')), 'ms')
    report.figure('blobs in the last one', await blobsIn(join(folder, `backup-${BACKUPS}`)))
    report.figure('accepted before a backup and missing in it', Math.max(...valuesOf('missing')))
    assert.equal(Math.max(...valuesOf('missing')), 0)
    assert.equal(Math.max(...valuesOf('refused')), 0)
  } finally {
    await service.end('SIGKILL')
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** This many messages a second, however long the responses take. */
function startLoad(service: ServiceProcess, accepted: Set<string>) {
  const running = new Set<Promise<void>>()
  const startedAt = performance.now()
  let sent = 0
  let taken = 0
  let refused = 0
  let slowestMs = 0
  const send = async (number: number) => {
    const form = new FormData()
    const to = `user${number}@example.org`
    const fields = { from: `sender@${service.domain}`, to, subject: `${number}`, text: TEXT }
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    if (number % LARGE_EVERY === 0) form.set('attachment', new File([FILE], 'file.bin'))
    const at = performance.now()
    const answer = await fetch(`${service.url}/v3/${service.domain}/messages`, {
      method: 'POST',
      headers: { authorization: AUTHORIZATION },
      body: form,
    }).catch(() => null)
    if (answer?.status === 200) accepted.add(((await answer.json()) as { id: string }).id)
    if (answer?.status === 200) taken++
    else refused++
    slowestMs = Math.max(slowestMs, Math.round(performance.now() - at))
  }
  const timer = setInterval(() => {
    while (sent < ((performance.now() - startedAt) / 1000) * PER_SECOND) {
      const one = send(sent++).finally(() => running.delete(one))
      running.add(one)
    }
  }, 5)
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(running)
      const perSecond = Math.round((1000 * taken) / (performance.now() - startedAt))
      return { refused, perSecond, slowestMs }
    },
  }
}

function messageIds(folder: string): Set<string> {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true })
  const rows = database.prepare('SELECT message_id FROM messages').all()
  database.close()
  return new Set(rows.map((row) => `<${row['message_id']}>`))
}

async function blobsIn(folder: string): Promise<number> {
  const entries = await readdir(join(folder, 'blobs'), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).length
}
