// Slow: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { connectSmtp } from '../../src/protocols/smtp/client.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

/** Two steps of the expansion. */
const MEMBERS = 600
const PER_CALL = 600
const ID = '<once@client.example>'

async function call(service: ServiceProcess, path: string, form?: Record<string, string>) {
  const answer = await fetch(service.url + path, {
    method: form ? 'POST' : 'GET',
    headers: { authorization: AUTHORIZATION },
    ...(form && { body: new URLSearchParams(form) }),
  })
  assert.equal(answer.status, 200, path)
  return answer.json() as Promise<unknown>
}

/** Code of the reply to the final dot; null: there was none. */
async function post(host: string, list: string): Promise<number | null> {
  try {
    const connection = await connectSmtp({
      ...{ host, port: 2525, heloName: 'client.example' },
      ...{ tls: 'none', verify: false },
    })
    const body = Buffer.from('Hi.\r\n')
    const { data } = await connection.send({
      returnPath: 'ann@author.example',
      recipients: [list],
      message: { headers: ['From: ann@author.example', `Message-Id: ${ID}`], body: [body] },
      sizeBytes: 100,
      utf8: false,
    })
    connection.close()
    return data?.code ?? null
  } catch {
    return null
  }
}

test('kill -9 between commit and 250, and during expansion: the mail that is sent again makes one delivery per member', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const folder = await temporaryFolder(t)
  const host = ownAddress()
  const env = {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    SENDWRIGHT_DNS: '127.0.0.1:9',
  }
  const start = async (more: Record<string, string> = {}) => {
    const started = await startProcess(host, { ...env, ...more })
    t.after(() => started.end('SIGKILL'))
    return started
  }
  let service = await start({ SENDWRIGHT_TEST_FAIL_POINT: 'accept-after-commit:1' })
  const list = `all@${service.domain}`
  await call(service, '/v3/lists', { address: list, access_level: 'everyone' })
  for (let from = 0; from < MEMBERS; from += PER_CALL) {
    const count = Math.min(PER_CALL, MEMBERS - from)
    const members = Array.from({ length: count }, (_, n) => `m${from + n}@example.org`)
    await call(service, `/v3/lists/${list}/members.json`, { members: JSON.stringify(members) })
  }
  await eventually('all members', async () => {
    const answer = (await call(service, `/v3/lists/${list}`)) as { list: { members_count: number } }
    return answer.list.members_count === MEMBERS
  })
  const death = once(service.child, 'exit')
  assert.equal(await post(host, list), null, 'the post is stored, its reply lost')
  await death
  service = await start()
  // Copies are on their way already.
  assert.equal(await post(host, list), 250)
  await sink.waitFor(1)
  await service.end('SIGKILL')
  service = await start()
  assert.equal(await post(host, list), 250)
  const delivered = () => new Set(sink.messages.flatMap(({ envelope }) => envelope.to)).size
  await eventually('all copies', async () => delivered() === MEMBERS)
  await service.end('SIGTERM')
  const paths = new Map(sink.messages.map(({ envelope }) => [envelope.from, envelope.to[0]]))
  assert.equal(paths.size, MEMBERS, 'each member has one delivery, which a crash may repeat')
  const store = await openSqlite(folder)
  try {
    const count = async (table: 'messages' | 'list_expansions' | 'deliveries') =>
      (await store.db.selectFrom(table).select('id').execute()).length
    assert.deepEqual(
      [await count('messages'), await count('list_expansions'), await count('deliveries')],
      [1, 1, MEMBERS],
    )
    const accepted = await store.db
      .selectFrom('events')
      .select('recipient')
      .where('event', '=', 'accepted')
      .execute()
    assert.equal(accepted.length, MEMBERS + 1)
    assert.equal(new Set(accepted.map(({ recipient }) => recipient)).size, MEMBERS + 1)
  } finally {
    await store.close()
  }
})
