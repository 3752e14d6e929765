/** Posted forms of generated mail, compared field by field with what Python's email package reads from the same mail. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { fieldsOf } from '../interop/posting.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { receivedSamples } from '../support/received-samples.ts'
import { eventually, ownAddress, startTestService } from '../support/service.ts'
import { Dialogue } from '../support/smtp-dialogue.ts'
import { temporaryFolder } from '../support/stores.ts'

const SAMPLES = 308
const SEED = 31

test(`the forms of ${SAMPLES} mails have what Python's email package reads`, async (t) => {
  const receiver = await createReceiver({ host: ownAddress() })
  t.after(() => receiver.close())
  const { call, domain, config, service } = await startTestService(t, {
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_DNS: '127.0.0.1:9',
  })
  const form = { expression: 'catch_all()', action: `forward("${receiver.url}/in")` }
  assert.equal((await call('POST', '/v3/routes', { form })).status, 200)

  const samples = receivedSamples(SAMPLES, SEED)
  const client = await Dialogue.open({ host: config.smtpHost, port: service.smtp.port })
  t.after(() => client.destroy())
  await client.reply()
  await client.say('EHLO client.example')
  for (const [at, { kind, raw }] of samples.entries()) {
    await client.say('MAIL FROM:<a@example.org> BODY=8BITMIME')
    assert.equal(await client.say(`RCPT TO:<s${at}@${domain}>`), '250 2.1.5 OK')
    await client.say('DATA')
    client.write(Buffer.from(`${raw.toString('latin1').replaceAll(/^\./gm, '..')}.\r\n`, 'latin1'))
    assert.equal(await client.reply(), '250 2.0.0 Received', `${at}: ${kind}\n${raw.toString('latin1')}`)
  }
  await eventually('all posts', async () => receiver.posts.length === samples.length)

  const forms = await Promise.all(receiver.posts.map(fieldsOf))
  const byRecipient = new Map(
    forms.map((fields) => [fields.findLast(([name]) => name === 'recipient')?.[1], fields]),
  )
  if (spawnSync('python3', ['--version']).status !== 0) {
    t.diagnostic('no python3 on this machine: the fields were not compared with those of its library')
    return
  }
  const file = join(await temporaryFolder(t), 'forms.json')
  const paired = samples.map(({ raw }, at) => ({
    raw: raw.toString('base64'),
    fields: byRecipient.get(`s${at}@${domain}`),
  }))
  await writeFile(file, JSON.stringify(paired))
  const script = join(import.meta.dirname, '../support/compare_forms.py')
  const { stdout } = await promisify(execFile)('python3', [script, file], { maxBuffer: 64 * 1024 * 1024 })
  const { fields, differences } = JSON.parse(stdout) as { fields: number; differences: Difference[] }
  t.diagnostic(`${fields} fields compared`)
  const shown = differences.map(({ at, ...rest }) => ({ at, kind: samples[at]?.kind, ...rest }))
  assert.deepEqual(shown.slice(0, 5), [], `${differences.length} differences`)
  assert.ok(fields > 10 * SAMPLES)
})

interface Difference {
  at: number
  field: string
  posted: unknown
  read: unknown
}
