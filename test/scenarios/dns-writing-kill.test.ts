/** The process dies before or after the provider was asked: what was written is found out, finished, and taken back. */
// Slow: it kills processes of the service.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { clockAhead } from '../support/clock.ts'
import { createDnsServer } from '../support/dns-server.ts'
import { createFakeZone, startProviderApi, TOKEN } from '../support/dns-zone.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const NAME = 'mail.shop.example'
const CHANGES = `/sendwright/v1/domains/${NAME}/dns-changes`

async function call({ url }: ServiceProcess, method: string, path: string, json?: unknown) {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
    ...(json !== undefined && { body: JSON.stringify(json) }),
  })
  return { status: answer.status, body: JSON.parse(await answer.text()) }
}

async function dieAt(t: TestContext, point: string) {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const zone = createFakeZone('shop.example', ['mail TXT "v=spf1 a -all"', 'mail TXT "of somebody"'])
  const before = zone.lines()
  const api = await startProviderApi(t, 'desec', zone)
  const host = ownAddress()
  const env = {
    SENDWRIGHT_DATA: await temporaryFolder(t),
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  }
  const first = await startProcess(host, { ...env, SENDWRIGHT_TEST_FAIL_POINT: `${point}:1` })
  t.after(() => first.end('SIGKILL'))
  await call(first, 'POST', '/v4/domains', { name: NAME })
  const provider = { kind: 'desec', secret: TOKEN, api_url: api.url }
  await call(first, 'PUT', '/sendwright/v1/dns-providers/main', provider)
  const death = once(first.child, 'exit')
  await call(first, 'POST', CHANGES, {}).catch(() => {})
  await death
  assert.equal(first.child.signalCode, 'SIGKILL')
  const second = await startProcess(host, env)
  t.after(() => second.end('SIGKILL'))
  const [row] = (await call(second, 'GET', CHANGES)).body.items
  assert.equal(row.state, 'writing')
  const refused = await call(second, 'POST', CHANGES, {})
  assert.deepEqual(
    [refused.status, refused.body.message],
    [409, 'A change of the domain, or of several others, is being written'],
  )
  return { zone, before, second, id: row.id as string, env, host }
}

/** A process whose clock is four minutes ahead: the change is abandoned by then. */
async function later(t: TestContext, { second, env, host }: Awaited<ReturnType<typeof dieAt>>) {
  await second.end('SIGTERM')
  const third = await startProcess(host, { ...env, ...clockAhead(240_000) })
  t.after(() => third.end('SIGKILL'))
  return third
}

for (const [point, isWritten] of [
  ['dns-before-write', false],
  ['dns-after-write', true],
] as const)
  test(`${point}: the next call finds out what was written, and all can be taken back`, async (t) => {
    const rig = await dieAt(t, point)
    assert.equal(rig.zone.lines().length > rig.before.length, isWritten)
    const service = await later(t, rig)
    const { body } = await call(service, 'POST', CHANGES, {})
    assert.equal(body.state, isWritten ? 'unchanged' : 'done', JSON.stringify(body))
    const { items } = (await call(service, 'GET', CHANGES)).body
    const old = items.find(({ id }: { id: string }) => id === rig.id)
    assert.equal(old.state, 'failed')
    assert.ok(old.entries.every(({ written }: { written: boolean }) => written === isWritten))
    const undone = await call(service, 'POST', `${CHANGES}/${isWritten ? rig.id : body.id}/undo`, {})
    assert.equal(undone.body.state, 'done')
    assert.deepEqual(rig.zone.lines(), rig.before)
  })
