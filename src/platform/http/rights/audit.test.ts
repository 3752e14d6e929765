import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../../../../test/support/http-server.ts'
import { NotFound } from '../../../base/process/errors.ts'
import { anyJson } from '../../../base/shape.ts'
import { StoreFull } from '../../store/store.ts'
import { jsonReply } from '../answer/reply.ts'
import { operation } from '../operation.ts'
import { choiceParam, fileParam, flagParam, integerParam, textParam } from '../request/inputs.ts'
import { type AuditEntry, type AuditLog, type AuditOutcome, actionOf, withoutUrlSecrets } from './audit.ts'

/** Keeps what it is given. */
function recorder() {
  const entries: (AuditEntry & { outcome?: AuditOutcome })[] = []
  const log: AuditLog = {
    async open(given) {
      const entry: (typeof entries)[number] = { ...given }
      entries.push(entry)
      return async (outcome) => void Object.assign(entry, { outcome })
    },
  }
  return { entries, log }
}

const common = {
  method: 'POST',
  tag: 'Test',
  summary: 'x',
  auth: { area: 'domains', access: 'write' },
  answers: { 200: anyJson('ok') },
} as const

test('an operation that says nothing is recorded, with names and harmless values only', async () => {
  const { entries, log } = recorder()
  const change = operation({
    ...common,
    path: '/v3/{domain}/things/{thing}',
    id: 'changeBigThing',
    params: {
      password: textParam('Secret'),
      count: integerParam('A number'),
      active: flagParam('A switch'),
      kind: choiceParam('A word', ['one', 'two']),
      file: fileParam('Bytes'),
    },
    handler: async () => jsonReply({ secret: 'made-secret' }, { status: 201 }),
  })
  await using server = await startServer([change], { audit: log })
  const send = async (fields: Record<string, string>) => {
    const body = new FormData()
    for (const [name, value] of Object.entries(fields)) body.append(name, value)
    body.append('file', new File(['file-secret'], 'name-secret.txt'))
    assert.equal((await server.fetch('/v3/e.com/things/7', { method: 'POST', body })).status, 201)
    return entries.at(-1) as (typeof entries)[number]
  }
  const plain = await send({ password: 'secret', count: '5', active: 'yes', kind: 'two', 'name-secret': 'x' })
  assert.deepEqual([plain.action, plain.subject], ['big-thing.change', 'e.com/7'])
  const hidden = '(not recorded)'
  assert.deepEqual(plain.given, { password: hidden, count: '5', active: 'yes', kind: 'two', file: hidden })
  assert.deepEqual(plain.outcome, { status: 201, made: {} })
  assert.deepEqual([plain.caller.keyId, plain.remoteAddress], ['id-admin', '127.0.0.1'])
  // A secret in the wrong place does not have the form of what belongs there.
  const misplaced = await send({ count: 'secret', active: 'secret', kind: 'secret' })
  assert.deepEqual(misplaced.given, { count: hidden, active: hidden, kind: hidden, file: hidden })
})

test('an operation names what is kept; URLs lose user info and query, long values their ends', async () => {
  const { entries, log } = recorder()
  const change = operation({
    ...common,
    path: '/things',
    id: 'createThing',
    audit: { action: 'thing.make', subject: ['name'], given: ['url', 'note', 'filter'], made: ['thing.id'] },
    handler: async () => ({ thing: { id: 'thing-1', secret: 'secret' } }),
  })
  await using server = await startServer([change], { audit: log })
  const deep = JSON.parse(`${'['.repeat(100)}${']'.repeat(100)}`)
  const body = JSON.stringify({
    name: 'https://user:secret@one.example/x?secret#secret',
    url: ['https://user:secret@two.example/hook?token=secret', `https://e.org/${'s'.repeat(9000)}`],
    note: 'n'.repeat(1000),
    filter: { domain: 'e.com', url: 'http://user:secret@e.org', limit: 3, deep },
  })
  const headers = { 'content-type': 'application/json' }
  const answer = await server.fetch('/things', { method: 'POST', headers, body })
  assert.equal(answer.status, 200)
  const [entry] = entries
  assert.equal(entry?.subject, 'https://one.example/x')
  assert.deepEqual(entry?.given, {
    url: ['https://two.example/hook', '(not recorded)'],
    note: 'n'.repeat(256),
    filter: { domain: 'e.com', url: 'http://e.org/', limit: 3, deep: '(not recorded)' },
  })
  assert.deepEqual(entry?.outcome, { status: 200, made: { 'thing.id': 'thing-1' } })
  assert.equal(withoutUrlSecrets('https://user:secret@['), '(not recorded)')
})

test('without room for the row nothing is changed, and a refusal is noted with its status', async () => {
  let changed = 0
  const change = operation({
    ...common,
    path: '/things',
    id: 'changeThing',
    handler: async () => {
      changed += 1
      throw new NotFound()
    },
  })
  const full: AuditLog = { open: () => Promise.reject(new StoreFull('the disk is full')) }
  await using refusing = await startServer([change], { audit: full })
  assert.equal((await refusing.fetch('/things', { method: 'POST' })).status, 507)
  assert.equal(changed, 0)
  const { entries, log } = recorder()
  await using server = await startServer([change], { audit: log })
  assert.equal((await server.fetch('/things', { method: 'POST' })).status, 404)
  assert.deepEqual([changed, entries[0]?.outcome], [1, { status: 404, made: {} }])
})

test('who acts for a subaccount is recorded with both accounts', async () => {
  const { entries, log } = recorder()
  const change = operation({ ...common, path: '/things', id: 'changeThing', handler: async () => ({}) })
  await using server = await startServer([change], { audit: log })
  const headers = { 'x-service-on-behalf-of': 'child' }
  assert.equal((await server.fetch('/things', { method: 'POST', headers })).status, 200)
  const { caller } = entries[0] as AuditEntry
  assert.deepEqual([caller.accountId, caller.parentAccountId], ['child', 'acc-1'])
})

test('reads, refused callers and exempt operations leave nothing', async () => {
  const { entries, log } = recorder()
  const handler = async () => ({})
  await using server = await startServer(
    [
      operation({ ...common, method: 'GET', path: '/get', id: 'readThing', handler }),
      operation({
        ...common,
        path: '/query',
        id: 'queryThings',
        auth: { area: 'domains', access: 'read' },
        handler,
      }),
      operation({ ...common, path: '/send', id: 'sendThing', audit: { exempt: 'an event' }, handler }),
      operation({ ...common, path: '/own', id: 'ownThing', audit: { by: 'operation' }, handler }),
      operation({ ...common, path: '/change', id: 'changeThing', handler }),
    ],
    { audit: log },
  )
  assert.equal((await server.fetch('/get')).status, 200)
  for (const path of ['/query', '/send', '/own'])
    assert.equal((await server.fetch(path, { method: 'POST' })).status, 200)
  assert.equal((await server.fetch('/change', { method: 'POST', key: 'basic' })).status, 403)
  assert.equal((await server.fetch('/change', { method: 'POST', key: '' })).status, 401)
  assert.deepEqual(entries, [])
})

test('a public operation that changes something must say how it is recorded', () => {
  const handler = async () => ({})
  const forgotten = () => operation({ ...common, auth: 'public', path: '/open', id: 'changeOpenly', handler })
  assert.throws(forgotten, /changeOpenly: public, so it must say/)
})

test('actions are named after operations', () => {
  assert.equal(actionOf('createKey'), 'key.create')
  assert.equal(actionOf('updateDomainWebhookUrl'), 'domain-webhook-url.update')
  assert.equal(actionOf('unsubscribe'), 'unsubscribe')
})
