/**
 * What the service posts for received mail is what Anymail and Action Mailbox have accepted and read: their recorded runs,
 * field by field. How they are made: README.md.
 */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { createReceiver } from '../support/http-receiver.ts'
import { ownAddress, startTestService, TEST_KEY } from '../support/service.ts'
import { APPLICATIONS } from './applications.ts'
import { fieldsOf, makeRoutes, post, type RecordedFields, SETTINGS, startDns } from './posting.ts'
import type { Recorded } from './recorded.ts'
import { SAMPLES } from './samples.ts'

for (const [name, { paths, found, expected }] of Object.entries(APPLICATIONS)) {
  test(`posts of received mail are those that ${name} accepted`, async (t) => {
    const recorded: Recorded = JSON.parse(
      await readFile(join(import.meta.dirname, 'recorded', `${name}.json`), 'utf8'),
    )
    const dns = await startDns()
    const receiver = await createReceiver({ host: ownAddress() })
    t.after(() => Promise.all([dns.close(), receiver.close()]))
    const { url, domain, service, config } = await startTestService(t, {
      ...SETTINGS,
      SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
      SENDWRIGHT_SMTP_PORT: '0',
    })
    const posting = {
      ...{ url, domain, receiver, smtp: { host: config.smtpHost, port: service.smtp.port } },
      authorization: `Basic ${Buffer.from(`api:${TEST_KEY}`).toString('base64')}`,
    }
    const signingKey = await makeRoutes(posting, paths)
    const samples = SAMPLES.filter(({ to }) => paths[to] !== undefined)
    assert.deepEqual(
      recorded.posts.map(({ sample }) => sample),
      samples.map((sample) => sample.name),
      'record again',
    )
    for (const [at, sample] of samples.entries()) {
      const accepted = recorded.posts[at] as Recorded['posts'][number]
      assert.ok(accepted.status >= 200 && accepted.status < 300)
      assert.deepEqual(found(accepted.read), expected(sample), sample.name)
      const fields = await fieldsOf(await post(posting, sample))
      assert.equal(accepted.path, receiver.posts[at]?.path)
      assert.deepEqual(settled(fields, domain), settled(accepted.fields, recorded.domain), sample.name)
      assertSigned(fields, signingKey, sample.name)
      assertSigned(accepted.fields, recorded.signingKey, `${sample.name}, recorded`)
    }
  })
}

/** As both packages do: with the last field of each name, over the digits of the timestamp and the token as they came. */
function assertSigned(fields: RecordedFields, key: string, what: string): void {
  const last = (name: string) => fields.findLast(([other]) => other === name)?.[1]
  const [timestamp, token, signature] = [last('timestamp'), last('token'), last('signature')]
  assert.match(String(timestamp), /^[1-9]\d{9}$/, what)
  const expected = createHmac('sha256', key).update(`${timestamp}${token}`).digest('hex')
  assert.equal(signature, expected, what)
}

/** Without what is new in each run: the service's names and addresses, times, ids, and what is signed. */
function settled(fields: RecordedFields, domain: string): RecordedFields {
  return fields.map(([name, value]) => {
    if (typeof value !== 'string') return [name, value]
    if (['timestamp', 'token', 'signature'].includes(name)) return [name, '']
    const text = value
      .replaceAll(domain, 'receiving.example')
      .replaceAll(/127\.\d+\.\d+\.\d+(?::\d+)?/g, '127.0.0.1')
      .replaceAll(
        / id [\w-]+;(\s+)[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} [+-]\d{4}/g,
        ' id ID;$1DATE',
      )
      .replaceAll(/\/messages\/[\w-]+/g, '/messages/KEY')
    return [name, text]
  })
}
