import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstRouteFor, routesFor, type Step } from './evaluate.ts'
import { MailHeaders } from './expression.ts'
import { PatternWork, WorkTurns } from './pattern-work.ts'
import { type CompiledRoute, compileRoute } from './route.ts'

const route = (id: string, expression: string, ...actions: string[]): CompiledRoute =>
  compileRoute({ id, accountId: 'a', priority: 0, description: '', expression, actions, createdAt: 0 })

const shown = (step: Step) => {
  switch (step.kind) {
    case 'post':
    case 'notify':
      return `${step.route.id} ${step.kind} ${step.url}`
    case 'mail':
      return `${step.route.id} mail ${step.address}`
    case 'unusable':
      return `${step.route.id} unusable ${step.text}`
    case 'store':
      return `${step.route.id} store`
  }
}

const newWork = () => new PatternWork(new WorkTurns())
const HEADERS: Record<string, string[]> = { subject: ['Order 17'] }
const stepsFor = async (routes: CompiledRoute[], recipient = 'bob@example.com') => {
  const work = newWork()
  const headers = new MailHeaders((name) => HEADERS[name] ?? [], work)
  const { steps, matched } = await routesFor(routes, { recipient, headers, work })
  return { steps: steps.map(shown), matched: matched.map(({ id }) => id) }
}

test('every route that matches runs its actions in order', async () => {
  const routes = [
    route('1', 'match_recipient("alice")', 'store()'),
    route(
      '2',
      'match_recipient("(.*)@")',
      'forward("https://x.example/\\1, c@example.org")',
      'store(notify="https://n.example/")',
    ),
    route('3', 'match_header("subject", "order (\\d+)")', 'forward("https://x.example/orders/\\1")'),
    route('4', 'catch_all()', 'store()'),
  ]
  assert.deepEqual(await stepsFor(routes), {
    steps: [
      '2 post https://x.example/bob',
      '2 mail c@example.org',
      '2 store',
      '2 notify https://n.example/',
      '3 post https://x.example/orders/17',
    ],
    matched: ['2', '3'],
  })
})

test('catch_all is for what no route before it matched', async () => {
  const routes = [route('1', 'match_recipient("alice")', 'stop()'), route('2', 'catch_all()', 'store()')]
  assert.deepEqual((await stepsFor(routes)).matched, ['2'])
  assert.deepEqual((await stepsFor(routes, 'alice@example.com')).matched, ['1'])
})

test('stop ends the evaluation after the other actions of its route', async () => {
  const routes = [
    route('1', 'match_recipient(".*")', 'stop()', 'store()'),
    route('2', 'match_recipient(".*")', 'forward("a@example.org")'),
  ]
  assert.deepEqual(await stepsFor(routes), { steps: ['1 store'], matched: ['1'] })
})

test('a destination that is reached twice is used once', async () => {
  const routes = [
    route('1', 'match_recipient(".*")', 'forward("A@example.org, https://x.example/")', 'store()'),
    route(
      '2',
      'match_recipient(".*")',
      'forward("a@example.org")',
      'forward("https://x.example/")',
      'store()',
    ),
  ]
  assert.deepEqual((await stepsFor(routes)).steps, [
    '1 mail A@example.org',
    '1 post https://x.example/',
    '1 store',
  ])
})

test('a destination that its captures spoil is reported', async () => {
  const routes = [route('1', 'match_header("subject", "(.*)")', 'forward("\\1@example.org")', 'store()')]
  assert.deepEqual((await stepsFor(routes)).steps, ['1 unusable \\1@example.org', '1 store'])
})

test('the first route without headers, and with any', async () => {
  const routes = [
    route('1', 'match_header("subject", "x")', 'store()'),
    route('2', 'match_recipient("bob")', 'store()'),
  ]
  assert.equal((await firstRouteFor(routes, 'bob@example.com', false, newWork()))?.id, '2')
  assert.equal((await firstRouteFor(routes, 'bob@example.com', true, newWork()))?.id, '1')
  assert.equal(await firstRouteFor(routes, 'alice@example.com', false, newWork()), null)
})

test('many costly routes leave turns to other work', async () => {
  const costly = Array.from({ length: 200 }, (_, at) =>
    route(String(at), 'match_recipient("(?:(a?)(b|c)?){80}x")', 'store()'),
  )
  let turns = 0
  let done = false
  const count = () => {
    if (done) return
    turns++
    setImmediate(count)
  }
  count()
  await routesFor(costly, { recipient: 'b'.repeat(300), headers: null, work: newWork() })
  done = true
  assert.ok(turns > 20, `${turns} turns`)
})
