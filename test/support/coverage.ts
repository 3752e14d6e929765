/** Tables that say which test covers what: a test that was renamed or deleted is missed at once. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** Asserts that the file has a test of that name, written as in the source, and that it is not skipped. */
export function assertTestExists(file: string, name: string): void {
  const source = readFileSync(join(ROOT, file), 'utf8')
  const found = ['`', "'", '"'].some((quote) =>
    [`test(${quote}${name}${quote}`, `test(\n  ${quote}${name}${quote}`].some((start) =>
      source.includes(start),
    ),
  )
  assert.ok(found, `${file} has no test "${name}"`)
}
