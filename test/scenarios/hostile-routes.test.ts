/** Patterns of routes that are made to take long, and mail for them: the bound is for each mail, and other calls go on. */
// Slow: it sends a whole process more than anyone does, and measures it meanwhile.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { startReceivedRig } from '../support/received-rig.ts'

const costly = (at: number) => `(?:a?b?){480}z${at}`
const calls = (name: string, count: number, from: number) =>
  Array.from({ length: count }, (_, at) => `match_header("${name}", "${costly(from + at)}")`).join(' or ')
const FIELDS = Array.from({ length: 20 }, () => `X-Long: ${'a'.repeat(250)}`)
const HELLO = Buffer.from('Hello\r\n')

test('an expression, and the routes of an account, have a bound for their patterns', async (t) => {
  const { route } = await startReceivedRig(t)
  assert.equal(await route(calls('x-long', 88, 0), 'store()'), 400)
  let made = 0
  let status = 200
  for (; status === 200 && made < 20; made++) status = await route(calls('x-long', 3, 3 * made), 'store()')
  assert.equal(status, 400)
  assert.ok(made >= 17 && made <= 18, `${made} routes`)
  assert.equal(await route('match_recipient("bob@")', 'store()'), 200)
})

test('a mail with costly headers for many routes is matched in turns, or comes again', async (t) => {
  const { route, give, measured } = await startReceivedRig(t)
  for (let at = 0; at < 10; at++) assert.equal(await route(calls('x-long', 3, 3 * at), 'store()'), 200)
  assert.equal(await route('match_recipient("in@")', 'store()'), 200)
  assert.equal(await give(['X-Short: a'], HELLO, 'in'), 250)
  await measured('headers', async () => assert.equal(await give(FIELDS, HELLO, 'in'), 451))
  await measured('headers of several mails', async () => {
    const replies = await Promise.all(Array.from({ length: 4 }, () => give(FIELDS, HELLO, 'in')))
    assert.deepEqual(replies, [451, 451, 451, 451])
  })
  assert.equal(await give([`X-Long: ${'a'.repeat(100)}`], HELLO, 'in'), 250)
})

test('routes of an earlier release, beyond the bound: recipients are matched in turns, or come again', async (t) => {
  const rig = await startReceivedRig(t)
  assert.equal(await rig.route('match_recipient("in@")', 'store()'), 200)
  await rig.service.end('SIGTERM')
  const database = new DatabaseSync(join(rig.data, 'sendwright.db'))
  const expression = Array.from({ length: 80 }, (_, at) => `match_recipient("${costly(at)}")`).join(' or ')
  for (let at = 0; at < 3; at++)
    database
      .prepare(
        'INSERT INTO routes SELECT ?, account_id, -1, description, ?, actions_sealed, created_at FROM routes LIMIT 1',
      )
      .run(`${at}`.repeat(24), expression)
  database.close()
  await rig.restart()
  const long = 'a'.repeat(30)
  await rig.measured('recipients', async () => assert.equal(await rig.give([], HELLO, long), 451))
  await rig.measured('a test of the address', async () => {
    const { status } = await rig.call('GET', `/v3/routes/match?address=${long}%40${rig.service.domain}`)
    assert.equal(status, 400)
  })
})
