// Slow: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

/** About sixteen steps of the expansion. */
const MEMBERS = 8_000
const PER_CALL = 1_000
const KILLS = 2

async function call(service: ServiceProcess, path: string, form?: Record<string, string>) {
  const answer = await fetch(service.url + path, {
    method: form ? 'POST' : 'GET',
    headers: { authorization: AUTHORIZATION },
    ...(form && { body: new URLSearchParams(form) }),
  })
  assert.equal(answer.status, 200)
  return answer.json()
}

/** Copies made so far; all of them are scheduled for later. */
async function copies(service: ServiceProcess): Promise<number> {
  const { items } = (await call(service, '/sendwright/v1/scheduled')) as { items: { recipients: number }[] }
  return items[0]?.recipients ?? 0
}

test('kill -9 while a post is expanded: afterwards each member has exactly one delivery', async (t) => {
  const folder = await temporaryFolder(t)
  const host = ownAddress()
  const start = async () => {
    const started = await startProcess(host, { SENDWRIGHT_DATA: folder })
    t.after(() => started.end('SIGKILL'))
    return started
  }
  let service = await start()
  const list = `all@${service.domain}`
  await call(service, '/v3/lists', { address: list })
  for (let from = 0; from < MEMBERS; from += PER_CALL) {
    const members = Array.from({ length: PER_CALL }, (_, n) => `m${from + n}@example.org`)
    await call(service, `/v3/lists/${list}/members.json`, { members: JSON.stringify(members) })
  }
  await eventually('all members', async () => {
    const answer = (await call(service, `/v3/lists/${list}`)) as { list: { members_count: number } }
    return answer.list.members_count === MEMBERS
  })
  await call(service, `/v3/${service.domain}/messages`, {
    from: `me@${service.domain}`,
    to: list,
    subject: 'To all',
    text: 'Hi %recipient_email%.',
    'o:deliverytime': new Date(Date.now() + 3_600_000).toUTCString(),
  })
  // Right after the response, then each time one step later.
  for (let kill = 0, before = 0; kill < KILLS; kill++) {
    await service.end('SIGKILL')
    service = await start()
    const seen = await eventually('a further step', async () => {
      const count = await copies(service)
      return count > before || count === MEMBERS ? count : null
    })
    t.diagnostic(`${seen} copies at start ${kill + 1}`)
    before = seen
  }
  await eventually('all copies', async () => (await copies(service)) === MEMBERS)
  await service.end('SIGTERM')

  const store = await openSqlite(folder)
  try {
    const counts = (table: 'deliveries' | 'events') =>
      store.db
        .selectFrom(table)
        .select((of) => [
          of.fn.countAll<number>().as('rows'),
          of.fn.count<number>('recipient').distinct().as('recipients'),
        ])
        .where('recipient', 'like', 'm%@example.org')
    const deliveries = await counts('deliveries').executeTakeFirstOrThrow()
    assert.deepEqual([Number(deliveries.rows), Number(deliveries.recipients)], [MEMBERS, MEMBERS])
    const events = await counts('events').where('event', '=', 'accepted').executeTakeFirstOrThrow()
    assert.deepEqual([Number(events.rows), Number(events.recipients)], [MEMBERS, MEMBERS])
    assert.equal((await store.db.selectFrom('messages').select('id').execute()).length, 1)
  } finally {
    await store.close()
  }
})
