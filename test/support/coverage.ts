/** Tables of which test covers what: a renamed or deleted test is noticed at once. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/**
 * Whether the file has a test of that name, written as in the source: as the first argument of `test` or of a helper
 * that calls it, or first in a row of a table. Skipped ones do not count.
 */
export function hasTest(file: string, name: string): boolean {
  const source = readFileSync(join(ROOT, file), 'utf8')
  return ['`', "'", '"'].some((quote) => {
    const literal = `${quote}${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}${quote}`
    return new RegExp(`(?<!\\.(?:skip|todo))[([]\\s*${literal}`).test(source)
  })
}

/** Asserts that the file has a test of that name and that it is not skipped. */
export function assertTestExists(file: string, name: string): void {
  assert.ok(hasTest(file, name), `${file} has no test "${name}"`)
}
