import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { selfTimes } from '../scenarios/profile.ts'
import { readOptions } from './options.ts'
import { type StoredSection, store } from './results.ts'
import { withRig } from './rig.ts'

const section = (scenario: string, seen: string): StoredSection => ({
  scenario,
  command: `npm run bench -- ${scenario}`,
  environment: { node: 'v24' },
  title: `About ${scenario}`,
  notes: ['a | b'],
  bars: [{ what: 'rate', bar: 'at least 1', seen, held: true }],
  tables: [{ head: ['a'], rows: [['x | y']] }],
  raw: null,
})

test('a scenario run again replaces its earlier section; the others keep their order', async () => {
  await withRig(tmpdir(), async ({ folder }) => {
    const order = ['accept', 'e2e']
    for (const one of [section('e2e', '1'), section('accept', '2'), section('e2e', '3')])
      store(folder, order, one)
    const text = readFileSync(join(folder, 'results.md'), 'utf8')
    assert.ok(text.indexOf('About accept') < text.indexOf('About e2e'))
    assert.ok(text.includes('| e2e | rate | at least 1 | 3 | yes |') && text.includes('x \\| y'))
    assert.equal((JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8')) as unknown[]).length, 2)
  })
})

test('options: defaults, a short run that writes nothing, and errors for faults', () => {
  const { names, options } = readOptions(['e2e', '--short'])
  assert.deepEqual(
    [names, options.runs, options.out, options.databases],
    [['e2e'], 1, null, ['sqlite', 'postgres']],
  )
  assert.equal(readOptions(['--runs', '5']).options.runs, 5)
  assert.deepEqual(readOptions(['--with', '/a', '--with', '/b']).options.others, ['/a', '/b'])
  assert.throws(() => readOptions(['--runs', '0']), /--runs "0"/)
  assert.throws(() => readOptions(['--database', 'oracle']), /oracle/)
})

test('self times count samples within the window, by function and module, without idling', () => {
  const frame = (functionName: string, url: string) => ({ functionName, url, lineNumber: 9 })
  const source = new URL('../../src/protocols/smtp/client.ts', import.meta.url).href
  const profile = {
    nodes: [
      { id: 1, callFrame: frame('(idle)', '') },
      { id: 2, callFrame: frame('send', source) },
      { id: 3, callFrame: frame('write', 'node:internal/stream/base') },
    ],
    samples: [2, 1, 2, 3, 2],
    timeDeltas: [1_000, 1_000, 3_000, 1_000, 9_000],
    startTime: 0,
  }
  const { busyMs, functions, modules } = selfTimes(profile, { from: 2, to: 7 })
  assert.equal(busyMs, 4)
  assert.deepEqual(functions[0], ['send src/protocols/smtp/client.ts:10', 3])
  assert.deepEqual(modules, [
    ['src/protocols/smtp', 3],
    ['node:internal/stream', 1],
  ])
})
