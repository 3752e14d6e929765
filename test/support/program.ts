/**
 * The program that tests start as processes: the sources, or, in a run of all tests, a bundle of them as a release has
 * it (scripts/test.ts). Loading more than a thousand modules takes two thirds of a start.
 */
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const BUNDLED = process.env['SENDWRIGHT_TEST_PROGRAM']

/** Holds `bin`, `docs` and all else that belongs to the program. */
export const PROGRAM_FOLDER = BUNDLED ?? join(import.meta.dirname, '../..')

export const MAIN = join(PROGRAM_FOLDER, BUNDLED === undefined ? 'src/main.ts' : 'dist/main.js')

/** What is compiled once for all starts; Node compares it with the sources. */
export const COMPILE_CACHE =
  BUNDLED === undefined
    ? (process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'sendwright-compile-cache'))
    : join(BUNDLED, 'compile-cache')
