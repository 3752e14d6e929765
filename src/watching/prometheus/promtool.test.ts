/**
 * What Prometheus itself says of our rules, configuration and figures, where its `promtool` is at hand (Debian's package
 * prometheus). area.test.ts checks names and labels without it.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually, startTestService } from '../../../test/support/service.ts'

const ROOT = join(import.meta.dirname, '../../..')

const promtool = (args: readonly string[], input = '') =>
  spawnSync('promtool', args, { cwd: ROOT, encoding: 'utf8', input })

const skip = promtool(['--version']).error ? 'there is no promtool' : false

const CALLS: [what: string, ...args: string[]][] = [
  ['the alert rules are valid', 'check', 'rules', 'deploy/prometheus/alerts.yml'],
  [
    'the part of a configuration is valid',
    'check',
    'config',
    '--syntax-only',
    'deploy/prometheus/scrape.yml',
  ],
  ['alerts fire when they should, and not before', 'test', 'rules', 'test/fixtures/prometheus/alerts.yml'],
]

for (const [what, ...args] of CALLS)
  test(what, { skip }, () => {
    const { status, stdout, stderr } = promtool(args)
    assert.equal(status, 0, stdout + stderr)
  })

test('promtool has nothing to say of the figures', { skip }, async (t) => {
  const { call, send } = await startTestService(t)
  assert.equal((await send({})).status, 200)
  const text = await eventually('figures of a delivery', async () => {
    const answer = await call('GET', '/metrics')
    return answer.text.includes('event="delivered"') && answer.text
  })
  const { status, stdout, stderr } = promtool(['check', 'metrics'], text)
  assert.deepEqual([status, stdout, stderr], [0, '', ''])
})
