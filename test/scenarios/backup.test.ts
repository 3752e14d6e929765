/** `sendwright backup`, `verify` and `restore` as separate processes. R14 does it ten times under load. */
// Slow: it starts and ends whole processes, again and again.
import assert from 'node:assert/strict'
import { appendFile, mkdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { runCommand } from '../support/command.ts'
import { post } from '../support/crash-rig.ts'
import { eventually, ownAddress, startTestService } from '../support/service.ts'
import { AUTHORIZATION, EndedAtStart, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

async function rig(t: TestContext) {
  const folder = await temporaryFolder(t)
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const host = ownAddress()
  const delivery = { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  const envOf = (data: string) => ({
    SENDWRIGHT_HOST: host,
    SENDWRIGHT_DATA: join(folder, data),
    ...delivery,
  })
  const start = async (data: string) => {
    const service = await startProcess(host, envOf(data))
    t.after(() => service.end('SIGKILL'))
    return service
  }
  const run = (data: string, ...args: string[]) => runCommand(envOf(data), ...args)
  return { folder, sink, start, run, at: (name: string) => join(folder, name) }
}

/** Accepted now, delivered in a day, with a file that is too large for a row. */
async function sendLarge(service: ServiceProcess): Promise<void> {
  const form = new FormData()
  const fields = { from: `sender@${service.domain}`, to: 'large@example.org', subject: 'large', text: 'Hi.' }
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  form.set('o:deliverytime', new Date(Date.now() + 86_400_000).toUTCString())
  form.set('attachment', new File([Buffer.alloc(700_000, 'attached ')], 'large.bin'))
  const answer = await fetch(`${service.url}/v3/${service.domain}/messages`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: form,
  })
  assert.equal(answer.status, 200, await answer.text())
}

const messageIds = (folder: string) => {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true })
  const rows = database.prepare('SELECT message_id FROM messages').all()
  database.close()
  return new Set(rows.map((row) => `<${row['message_id']}>`))
}

test('a backup of a busy service has everything accepted before it, and starts', async (t) => {
  const { sink, start, run, at } = await rig(t)
  const service = await start('data')
  await sendLarge(service)
  const accepted = new Set<string>()
  let busy = true
  const clients = Array.from({ length: 4 }, async (_, client) => {
    for (let number = 0; busy; number++) {
      const answer = await post(service, {
        to: `user${client}@example.org`,
        subject: `${number}`,
        text: 'Hi.',
      })
      assert.ok('id' in answer, JSON.stringify(answer))
      accepted.add(answer.id)
    }
  })
  await eventually('some mail', async () => accepted.size > 100)
  const before = [...accepted]
  const made = await run('data', 'backup', at('backup'), '--with-secret', '--json')
  busy = false
  await Promise.all(clients)
  assert.equal(made.code, 0, made.err)
  const summary = JSON.parse(made.out)
  assert.equal(summary.withSecret, true)
  assert.equal(summary.counts.blobs, 1)
  assert.deepEqual(summary.missingBlobs, [])
  assert.ok(accepted.size > before.length, 'the service kept accepting')

  const verified = await run('data', 'verify', at('backup'))
  assert.deepEqual({ code: verified.code, err: verified.err }, { code: 0, err: '' })
  assert.match(verified.out, /is whole/)
  await service.end('SIGTERM')

  const restored = await run('restored', 'restore', at('backup'))
  assert.equal(restored.code, 0, restored.err)
  for (const name of ['sendwright.db', 'secret', 'blobs'])
    assert.equal((await stat(join(at('restored'), name))).mode & 0o077, 0, `${name} is for its owner only`)
  const copied = messageIds(at('restored'))
  assert.deepEqual(
    before.filter((id) => !copied.has(id)),
    [],
  )
  const again = await start('restored')
  assert.equal(again.domain, service.domain)
  await eventually('what waited is sent', async () =>
    [...copied].every((id) => sink.messages.some(({ raw }) => raw.includes(id)) || isLarge(id)),
  )
  assert.ok('id' in (await post(again, { to: 'new@example.org', subject: 'new', text: 'Hi.' })))

  function isLarge(id: string): boolean {
    return !accepted.has(id)
  }
})

test('without a service the command makes the backup itself; an incomplete backup is not restored', async (t) => {
  const { start, run, at } = await rig(t)
  await (await start('data')).end('SIGTERM')
  const made = await run('data', 'backup', at('backup'))
  assert.equal(made.code, 0, made.err)
  assert.match(made.out, /does not hold the secret/)
  assert.match((await run('data', 'restore', at('backup'))).err, /is not empty/)
  const restored = await run('restored', 'restore', at('backup'))
  assert.equal(restored.code, 0, restored.err)
  assert.match(restored.out, /Put the secret into/)
  await appendFile(at('backup/sendwright.db'), 'x')
  const refused = await run('other', 'restore', at('backup'), '--json')
  assert.equal(refused.code, 1)
  assert.match(JSON.parse(refused.out).error, /sendwright\.db has \d+ bytes instead of/)
  // As left by an interrupted restore.
  await rm(at('restored/sendwright.db'))
  await writeFile(at('restored/restoring'), '')
  const error = await start('restored').then(
    () => null,
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof EndedAtStart)
  assert.match(error.message, /a restore into it did not end/)
})

test('only the command line on the machine may request a backup', async (t) => {
  const service = await startTestService(t)
  const folder = join(await temporaryFolder(t), 'backup')
  const answer = await service.call('POST', '/sendwright/v1/backups', { form: { folder } })
  assert.equal(answer.status, 403)
  await assert.rejects(stat(folder))
  assert.equal((await service.call('GET', '/sendwright/v1/backups/1')).status, 403)
})

test('commands that cannot be carried out give the reason', async (t) => {
  const { run, at } = await rig(t)
  assert.equal((await run('data', 'backup')).code, 2)
  assert.equal((await run('data', 'verify', 'a', 'b')).code, 2)
  assert.equal((await run('data', 'restore', 'a', '--with-secret')).code, 2)
  assert.match((await run('data', 'backup', at('backup'))).err, /There is nothing to back up/)
  await mkdir(at('empty'))
  assert.match((await run('data', 'verify', at('empty'))).err, /holds no whole backup/)
  const env = { SENDWRIGHT_DATABASE_URL: 'postgres://localhost/none', SENDWRIGHT_DATA: at('data') }
  for (const command of ['backup', 'restore']) {
    const { code, err } = await runCommand(env, command, at('backup'))
    assert.equal(code, 1)
    assert.match(err, /pg_dump/)
  }
})
