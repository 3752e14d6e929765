/** R4: a service under load, images of its data after a power loss, and what is missing in them. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { filesBelow, WriteLog } from './power-loss.ts'
import { seededNumbers } from './random.ts'
import { ownAddress } from './service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from './service-process.ts'
import { createSink } from './smtp-sink.ts'

export interface PowerLossFigures {
  images: number
  /** Acknowledged before the last image. */
  accepted: number
  /** Acknowledged before an image and not in it, or with a broken attachment. */
  missing: number
  /** Total bytes lost in the images. */
  lostBytes: number
}

const SENDERS = 4
/** One in this many messages has an attachment, which is a blob. */
const BLOB_EVERY = 20
/** Too large for a row. */
const FILE = randomBytes(300_000)
const FILE_HASH = createHash('sha256').update(FILE).digest('hex')
/** Number of latest messages whose attachments are compared; older ones were in earlier images. */
const COMPARED_MAX = 100
const WAIT_MIN_MS = 20
const WAIT_SPREAD_MS = 300

/** Takes `images` images, each at a random moment of the load. `folder` is for the data and the images. */
export async function losePower(folder: string, images: number): Promise<PowerLossFigures> {
  const random = seededNumbers(4)
  const sink = await createSink({ host: ownAddress() })
  const data = join(folder, 'data')
  await mkdir(data)
  const env = { SENDWRIGHT_DATA: data, SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  const service = await startProcess(ownAddress(), env, { synced: true })
  const pid = service.child.pid as number
  const ledger: string[] = []
  const load = startLoad(service, ledger)
  try {
    const log = await WriteLog.attach(pid, join(folder, 'strace.log'))
    const figures = { images, accepted: 0, missing: 0, lostBytes: 0 }
    for (let image = 1; image <= images; image++) {
      await sleep(WAIT_MIN_MS + random() * WAIT_SPREAD_MS)
      const acknowledged = [...ledger]
      process.kill(pid, 'SIGSTOP')
      const target = join(folder, `image-${image}`)
      try {
        figures.lostBytes += await log.image(data, target)
      } finally {
        process.kill(pid, 'SIGCONT')
      }
      figures.accepted = acknowledged.length
      figures.missing += await missingIn(target, acknowledged)
      await rm(target, { recursive: true, force: true })
    }
    await log.detach()
    return figures
  } finally {
    await load.stop()
    await service.end('SIGKILL')
    await sink.close()
  }
}

function startLoad(service: ServiceProcess, ledger: string[]): { stop(): Promise<void> } {
  let stopped = false
  let sent = 0
  const lanes = Array.from({ length: SENDERS }, async () => {
    while (!stopped) {
      const form = new FormData()
      form.append('from', `sender@${service.domain}`)
      form.append('to', 'user@example.org')
      form.append('subject', 'power')
      form.append('text', 'Hi.')
      if (sent++ % BLOB_EVERY === 0) form.append('attachment', new Blob([FILE]), 'file.bin')
      const answer = await fetch(`${service.url}/v3/${service.domain}/messages`, {
        method: 'POST',
        headers: { authorization: AUTHORIZATION },
        body: form,
      })
      const body = (await answer.json()) as { id: string }
      assert.equal(answer.status, 200)
      ledger.push(body.id.slice(1, -1))
    }
  })
  const all = Promise.all(lanes)
  all.catch(() => {}) // reported by `stop`
  return {
    async stop() {
      stopped = true
      await all
    },
  }
}

/** How many of the messages are not in the image as they were accepted. */
async function missingIn(image: string, acknowledged: readonly string[]): Promise<number> {
  const blobs = new Map(
    filesBelow(join(image, 'blobs')).map((file) => [file.split('/').at(-1) as string, file]),
  )
  const database = new DatabaseSync(join(image, 'sendwright.db'))
  try {
    const [check] = database.prepare('PRAGMA integrity_check').all()
    assert.deepEqual({ ...check }, { integrity_check: 'ok' })
    const rows = database.prepare('SELECT message_id, blobs_json FROM messages').all() as {
      message_id: string
      blobs_json: string
    }[]
    const found = new Map(rows.map((row) => [row.message_id, JSON.parse(row.blobs_json) as string[]]))
    let missing = 0
    for (const [at, id] of acknowledged.entries()) {
      const names = found.get(id)
      const compared = at >= acknowledged.length - COMPARED_MAX ? (names ?? []) : []
      const whole = await Promise.all(compared.map((name) => isWhole(blobs.get(name))))
      if (names === undefined || whole.includes(false)) missing++
    }
    return missing
  } finally {
    database.close()
  }
}

async function isWhole(file: string | undefined): Promise<boolean> {
  if (file === undefined) return false
  return (
    createHash('sha256')
      .update(await readFile(file))
      .digest('hex') === FILE_HASH
  )
}
