/** The stored message as its sender reads it back: every field, its files, its MIME text. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestService } from '../../../test/support/service.ts'

/** messages.md section 1, StoredMessage: always there. */
const KEYS = `Content-Transfer-Encoding Content-Type From Message-Id Mime-Version Subject To X-Service-Tag
  X-Service-Template-Name X-Service-Template-Variables sender recipients body-html body-plain stripped-html stripped-text
  stripped-signature message-headers`

test('a stored message has every field, and its files come back byte for byte', async (t) => {
  const service = await startTestService(t)
  const large = Buffer.alloc(300_000, 'ä0')
  const sent = await service.send({
    to: ['ann@example.org', 'Ben <ben@example.org>'],
    html: '<p>Hi <img src="cid:logo.png"></p>',
    'o:tag': ['one', 'two'],
    attachment: [new File(['small'], 'a b.txt', { type: 'text/plain' }), new File([large], 'large.bin')],
    inline: new File(['png'], 'logo.png', { type: 'image/png' }),
  })
  assert.equal(sent.status, 200)
  const [event] = await service.events('?event=accepted')
  assert.ok(event)
  const { url, key } = event['storage'] as { url: string; key: string }
  const path = `/v3/domains/${service.domain}/messages/${key}`
  assert.equal(new URL(url).pathname, path)
  const { status, body } = await service.call('GET', path)
  assert.equal(status, 200)
  assert.deepEqual(
    KEYS.split(/\s+/).filter((name) => !(name in body)),
    [],
  )
  assert.equal(body.recipients, 'ann@example.org, ben@example.org')
  assert.equal(body['X-Service-Tag'], 'one, two')
  assert.equal(body['Message-Id'], sent.body.id)

  const files: { name: string; size: number; url: string; 'content-type': string }[] = body.attachments
  const read = async (from: string) => {
    const answer = await fetch(service.url + new URL(from).pathname, {
      headers: { authorization: `Basic ${Buffer.from(`api:${service.key}`).toString('base64')}` },
    })
    assert.equal(answer.status, 200)
    return { type: answer.headers.get('content-type'), bytes: Buffer.from(await answer.arrayBuffer()) }
  }
  const named = (name: string) => files.find((file) => file.name === name) ?? assert.fail(`no ${name}`)
  assert.equal((await read(named('a b.txt').url)).bytes.toString(), 'small')
  const got = await read(named('large.bin').url)
  assert.deepEqual([got.bytes.equals(large), named('large.bin').size], [true, large.length])
  const inline = body['content-id-map']['<logo.png>']
  assert.equal((await read(inline.url)).bytes.toString(), 'png')

  const mime = await service.call('GET', path, { headers: { accept: 'message/rfc2822' } })
  assert.match(mime.body['body-mime'], /^Subject: Hello\r?$/m)
  assert.equal((await service.call('GET', `${path}/attachments/99`)).status, 404)
  assert.equal((await service.call('GET', `${path}/attachments/0`, { key: null })).status, 401)
})
