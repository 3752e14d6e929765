/** Forms of large mail: after failed attempts, and after `kill -9`, each URL gets the same. */
// Slow: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createReceiver } from '../support/http-receiver.ts'
import { type PostedForm, postedForm } from '../support/posted-form.ts'
import { startReceivedRig } from '../support/received-rig.ts'
import { eventually } from '../support/service.ts'

const HEADERS = ['MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary=b', 'X-Own: ä']
const BODY = Buffer.concat([
  Buffer.from('--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n'),
  Buffer.alloc(300_000, 'Zeile für Zeile\r\n'),
  Buffer.from('\r\n--b\r\nContent-Type: x/y\r\nContent-Transfer-Encoding: base64\r\n\r\n'),
  Buffer.from(Buffer.alloc(600_000, 7).toString('base64')),
  Buffer.from('\r\n--b--\r\n'),
])
const URLS = 3
const OWN = new Set(['timestamp', 'token', 'signature'])

/** All fields but the signature, the content of files included. */
const shared = ({ fields }: PostedForm) =>
  Promise.all(
    fields
      .filter(([name]) => !OWN.has(name))
      .map(async ([name, value]) => [
        name,
        typeof value === 'string' ? value : Buffer.from(await value.arrayBuffer()).toString('base64'),
      ]),
  )

test('a receiver that answers 500, and a kill in between: every form of a URL is the same', async (t) => {
  const receivers = await Promise.all(Array.from({ length: URLS }, () => createReceiver({ answer: 500 })))
  t.after(async () => {
    for (const receiver of receivers) await receiver.close()
  })
  const rig = await startReceivedRig(t, { SENDWRIGHT_INBOUND_SCHEDULE: '1s,2s,3s,4s,5s,6s,7s,8s' })
  const urls = receivers.map(({ url }, at) => `${url}/${at === 0 ? 'first' : 'in'}`)
  assert.equal(await rig.route('catch_all()', `forward("${urls.join(', ')}")`), 200)
  assert.equal(await rig.give(HEADERS, BODY, 'in', 'other'), 250)
  const posts = () => receivers.map((receiver) => receiver.posts.length)
  // Two recipients: two posts to each URL, in each round.
  await eventually('two rounds', async () => posts().every((count) => count >= 4))
  await rig.service.end('SIGKILL')
  const before = posts()
  await rig.restart()
  await eventually('another round', async () =>
    posts().every((count, at) => count >= (before[at] as number) + 2),
  )
  for (const receiver of receivers) receiver.answer = 200
  await eventually('the end', async () => {
    const { text } = await rig.call('GET', `/v3/${rig.service.domain}/events?event=delivered`)
    return JSON.parse(text).items.length === 2 * URLS
  })
  const forms = await Promise.all(receivers.flatMap((receiver) => receiver.posts.map(postedForm)))
  for (const recipient of ['in', 'other']) {
    const own = forms.filter((form) => form.text('recipient') === `${recipient}@${rig.service.domain}`)
    assert.ok(own.length >= 3 * URLS)
    const [first, ...others] = await Promise.all(own.map(shared))
    for (const other of others) assert.deepEqual(other, first)
    assert.equal(new Set(own.map((form) => form.text('token'))).size, own.length, 'a token for each attempt')
  }
  await eventually('the form is removed', async () => readdirSync(join(rig.data, 'spool')).length === 0)
})
