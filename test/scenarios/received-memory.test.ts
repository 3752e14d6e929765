/** Large mail, received from strangers or captured: what the service holds grows neither with the mail nor with its readers. */
// By name: it sends a whole process more than anyone does, and measures it for a minute.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createFormSink } from '../support/form-sink.ts'
import { memoryProbe, peakHeldBytes } from '../support/memory-probe.ts'
import { startReceivedRig } from '../support/received-rig.ts'
import { eventually } from '../support/service.ts'
import { AUTHORIZATION } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const MB = 1_000_000
const GROWTH_MAX_BYTES = 100 * 2 ** 20
const CAPTURED = 12
/** As base64, in lines: what is sent of a file of 18 MB. */
const CAPTURED_BYTES = 24 * MB
const QUOTED = Buffer.alloc(20 * MB, '> \r\n')

for (const urls of [12, 40]) {
  test(`the memory of a mail of 20 MB is not that of ${urls} destinations`, async (t) => {
    const sink = await createFormSink(t, urls)
    const memory = join(await temporaryFolder(t), 'memory')
    const { route, give, data } = await startReceivedRig(t, memoryProbe(memory))
    for (let at = 0; at < urls; at += 20) {
      const some = sink.urls.slice(at, at + 20).map((url) => `${url}/in`)
      assert.equal(await route(`match_recipient("in")`, `forward("${some.join(', ')}")`), 200)
    }
    const small = await peakHeldBytes(memory, async () => {
      assert.equal(await give([], Buffer.from('Hello\r\n'), 'in'), 250)
      await sink.waitFor(urls)
    })
    const large = await peakHeldBytes(memory, async () => {
      assert.equal(await give([], QUOTED, 'in'), 250)
      await sink.waitFor(2 * urls)
    })
    t.diagnostic(`${Math.round((large - small) / MB)} MB more`)
    assert.ok(large - small < GROWTH_MAX_BYTES, `${Math.round((large - small) / MB)} MB more`)
    assert.equal(new Set(sink.forms.slice(urls).map(({ digest }) => digest)).size, 1, 'one form')
    await eventually('the form is removed', async () => readdirSync(join(data, 'spool')).length === 0)
  })
}

test('the memory of reading a stored mail of 20 MB, several times at once, is not its size', async (t) => {
  const memory = join(await temporaryFolder(t), 'memory')
  const rig = await startReceivedRig(t, memoryProbe(memory))
  await rig.route('catch_all()', 'store()')
  const pathOf = async () => {
    const { text } = await rig.call('GET', `/v3/${rig.service.domain}/events?event=stored&limit=1`)
    return new URL(JSON.parse(text).items[0].storage.url).pathname
  }
  /** Bytes of the answers. */
  const read = async (path: string, accept: string) => {
    const answer = await fetch(rig.service.url + path, { headers: { authorization: AUTHORIZATION, accept } })
    let bytes = 0
    for await (const piece of answer.body ?? []) bytes += piece.byteLength
    return bytes
  }
  assert.equal(await rig.give([], Buffer.from('Hello\r\n'), 'in'), 250)
  const small = await peakHeldBytes(memory, async () => void (await read(await pathOf(), '')))
  assert.equal(await rig.give([], QUOTED, 'in'), 250)
  const path = await pathOf()
  for (const accept of ['application/json', 'message/rfc2822']) {
    const large = await peakHeldBytes(memory, async () => {
      const sizes = await Promise.all([1, 2, 3].map(() => read(path, accept)))
      for (const bytes of sizes) assert.ok(bytes > QUOTED.byteLength)
    })
    t.diagnostic(`${accept}: ${Math.round((large - small) / MB)} MB more`)
    assert.ok(large - small < GROWTH_MAX_BYTES, `${accept}: ${Math.round((large - small) / MB)} MB more`)
  }
})

test('the memory of capturing several mails of 18 MB at once is not their size', async (t) => {
  const memory = join(await temporaryFolder(t), 'memory')
  const { call, service } = await startReceivedRig(t, memoryProbe(memory))
  const captured = async () => JSON.parse((await call('GET', '/sendwright/v1/inbox')).text).items.length
  const send = async (count: number, file: Buffer<ArrayBuffer>) => {
    const before = await captured()
    const sent = Array.from({ length: count }, async () => {
      const body = new FormData()
      for (const [name, value] of [
        ['from', `sender@${service.domain}`],
        ['to', 'alice@example.org'],
        ['subject', 'Hello'],
        ['text', 'Hi.'],
      ] as const)
        body.append(name, value)
      body.append('attachment', new Blob([file]), 'file.bin')
      const url = `${service.url}/v3/${service.domain}/messages`
      const { status } = await fetch(url, { method: 'POST', headers: { authorization: AUTHORIZATION }, body })
      assert.equal(status, 200)
    })
    await Promise.all(sent)
    await eventually('they are captured', async () => (await captured()) === before + count)
  }
  const small = await peakHeldBytes(memory, () => send(CAPTURED, Buffer.from('Hello')))
  const large = await peakHeldBytes(memory, () => send(CAPTURED, Buffer.alloc(18 * MB, 'x')))
  t.diagnostic(`${Math.round((large - small) / MB)} MB more`)
  // What is in flight has a bound of its own, about 80 MB; a mail that is held once would be more than half.
  assert.ok(large - small < (CAPTURED * CAPTURED_BYTES) / 2, `${Math.round((large - small) / MB)} MB more`)
})
