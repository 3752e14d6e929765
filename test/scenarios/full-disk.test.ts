/** A disk that fills up, and has space again after deletions. R6 does the same on a small file system. */
// Slow: it fills the disk under whole processes.
import assert from 'node:assert/strict'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, ownAddress, startTestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const MB = 1024 * 1024
/** Longer than between two checks of a nearly full disk. */
const LOOK_MS = 500

test('below the floor nothing is accepted, and what was accepted is delivered', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const env = {
    SENDWRIGHT_DATA: await temporaryFolder(t),
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
  }
  const before = await startTestService(t, env)
  const deliverytime = new Date(Date.now() + 3_600_000).toUTCString()
  const accepted = await before.send({ 'o:deliverytime': deliverytime })
  assert.equal(accepted.status, 200)
  await before.service.stop()
  assert.equal(sink.messages.length, 0)

  const short = await startTestService(t, { ...env, SENDWRIGHT_FREE_SPACE_MIN: '900000g' })
  assert.equal((await short.send({})).status, 507)
  const path = `/sendwright/v1/scheduled/${encodeURIComponent(accepted.body.id)}`
  const form = { deliverytime: new Date().toUTCString() }
  assert.equal((await short.call('PATCH', path, { form })).status, 200)
  await eventually('the delivery', async () => sink.messages.length === 1)
  const delivered = async () => (await short.events('?event=delivered')).length === 1
  await eventually('its event', delivered)
})

/** Bytes of all files below `folder`. */
async function usedBy(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const sizes = files.map(({ parentPath, name }) =>
    stat(join(parentPath, name)).then(
      ({ size }) => size,
      () => 0,
    ),
  )
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

test('deleted data frees space for new mail, and on the disk', async (t) => {
  const folder = await temporaryFolder(t)
  const sizeBytes = 60 * MB
  const service = await startTestService(
    t,
    { SENDWRIGHT_DATA: folder, SENDWRIGHT_FREE_SPACE_MIN: '8m' },
    { freeBytes: async () => sizeBytes - (await usedBy(folder)) },
  )
  const text = `${'x'.repeat(98)}\r\n`.repeat(2_000)
  let accepted = 0
  const isQuiet = async () => {
    const { body } = await service.call('GET', '/sendwright/v1/system')
    return Object.values(body.queue as Record<string, number>).every((count) => count === 0)
  }
  // Deliveries and truncation of the log shift the limit a little: it is full if nothing is accepted one check later.
  for (let refused = 0; refused < 3 && accepted < 1_000; ) {
    const { status } = await service.send({ text })
    refused = status === 200 ? 0 : refused + 1
    if (status === 200) accepted++
    else {
      assert.equal(status, 507)
      await eventually('what was accepted is delivered', isQuiet)
      await sleep(LOOK_MS)
    }
  }
  const full = await usedBy(folder)
  assert.ok(full > sizeBytes - 16 * MB, `${accepted} messages take ${full} bytes`)

  assert.equal((await service.call('DELETE', '/sendwright/v1/inbox')).status, 200)
  await eventually('new mail is accepted', async () => (await service.send({})).status === 200)
  // Each message is stored twice: as accepted, which retention removes, and as captured.
  const emptied = accepted * text.length
  const left = () => usedBy(folder)
  await eventually('the disk has its room back', async () => full - (await left()) > emptied - 6 * MB)
  assert.ok(emptied > 15 * MB)
})
