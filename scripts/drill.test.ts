import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { drill } from './drill.ts'

const folder = mkdtempSync(join(tmpdir(), 'drills-'))
after(() => rmSync(folder, { recursive: true }))

writeFileSync(
  join(folder, 'R2-figures.ts'),
  `export const title = 'R2: figures are aligned'
export async function run(report: { figure(...parts: unknown[]): void; note(text: string): void }) {
  report.note('begins')
  report.figure('accepted', 120000, 'messages')
  report.figure('p99', 9.87654, 'ms')
  report.figure('database', 'postgres')
}`,
)
writeFileSync(
  join(folder, 'R10-fails.ts'),
  `export const title = 'R10: fails'
export async function run(report: { figure(...parts: unknown[]): void }) {
  report.figure('lost', 3)
  throw new Error('3 messages were lost')
}`,
)

async function run(name?: string, from = folder): Promise<{ code: number; lines: string[] }> {
  const lines: string[] = []
  const code = await drill(from, name, (text) => lines.push(...text.split('\n')))
  return { code, lines }
}

test('without a name the drills are listed, in the order of their numbers', async () => {
  assert.deepEqual(await run(), {
    code: 0,
    lines: ['R2       R2: figures are aligned', 'R10      R10: fails'],
  })
  assert.deepEqual(await run(undefined, join(folder, 'nowhere')), {
    code: 0,
    lines: ['There are no drills yet'],
  })
})

test('a drill that passes prints its aligned figures and ends with 0', async () => {
  const { code, lines } = await run('r2')
  assert.equal(code, 0)
  assert.deepEqual(lines.slice(0, 5), [
    'R2: figures are aligned',
    'begins',
    '  accepted   120,000 messages',
    '  p99          9.877 ms',
    '  database  postgres',
  ])
  assert.match(String(lines[5]), /^ {2}took {2,}[\d.]+ s$/)
  assert.equal(lines[6], 'passed')
})

test('a drill that fails still prints its figures and the reason, and ends with 1', async () => {
  const { code, lines } = await run('R10-fails')
  assert.equal(code, 1)
  assert.match(String(lines[1]), /lost +3$/)
  assert.ok(lines.some((line) => line.includes('3 messages were lost')))
  assert.equal(lines.at(-1), 'failed')
})

test('an unknown drill is refused with the known ones', async () => {
  const { code, lines } = await run('R1')
  assert.equal(code, 1)
  assert.deepEqual(lines, ['Cannot run drill "R1": 0 of that name; there are R2, R10'])
})

test('a file that is not a drill is an error that names it', async () => {
  const other = mkdtempSync(join(tmpdir(), 'drills-'))
  writeFileSync(join(other, 'R3.ts'), 'export const title = 1')
  await assert.rejects(run('R3', other), /Cannot use drill "R3\.ts": it must export "title" and "run"/)
  rmSync(other, { recursive: true })
})
