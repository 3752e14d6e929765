import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plantFiles } from '../test/support/plant-files.ts'
import { BARS, codeFaults } from './check-code.ts'

const statements = (count: number) => '  a()\n'.repeat(count)
const functionOf = (inner: string) => `export function f() {\n${inner}}\n`

test('a function with more lines of code than the bar is a fault, wherever it is', (t) => {
  const long = functionOf(statements(BARS.linesInFunction - 1))
  const commented = functionOf(`${statements(BARS.linesInFunction - 2)}\n${'  // b\n'.repeat(9)}`)
  const root = plantFiles(t, {
    'a/long.ts': long,
    'a/closure.ts': `export const g = () => [\n${long.replace('export ', '')}]\n`,
    'a/method.ts': `export const o = {\n${long.replace('export function ', '')}}\n`,
    'a/as-long.ts': commented,
    'a/long.test.ts': long,
  })
  assert.deepEqual(
    codeFaults(root).map((fault) => fault.replace(/: a function.*/, '')),
    ['a/closure.ts:1', 'a/closure.ts:2', 'a/long.ts:1', 'a/method.ts:2'],
  )
})

test('a file and a folder over the bar are faults; tests, generated files and migrations do not count', (t) => {
  const many = (name: (index: number) => string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [name(index), '']))
  const root = plantFiles(t, {
    'long.ts': 'a\n'.repeat(BARS.linesInFile + 1),
    'long.test.ts': 'a\n'.repeat(BARS.linesInFile + 1),
    'schema.ts': 'a\n'.repeat(BARS.linesInFile + 1),
    ...many((index) => `full/${index}.ts`, BARS.filesInFolder + 1),
    ...many((index) => `tested/${index}${index === 0 ? '.test' : ''}.ts`, BARS.filesInFolder + 1),
    ...many((index) => `migrations/${index}.sql`, BARS.filesInFolder + 1),
  })
  assert.deepEqual(codeFaults(root), [
    `full: ${BARS.filesInFolder + 1} files, at most ${BARS.filesInFolder}`,
    `long.ts: ${BARS.linesInFile + 1} lines, at most ${BARS.linesInFile}`,
  ])
})

test('a docstring that begins without its subject is a fault', (t) => {
  const root = plantFiles(t, {
    'a.ts':
      '/** Of the file. */\n/** Offers a file. */\n\n/**\n * Those of the file.\n */\n/** Lines of the file. */\n',
  })
  assert.deepEqual(codeFaults(root), [
    'a.ts:1: the docstring has no subject',
    'a.ts:4: the docstring has no subject',
  ])
})
