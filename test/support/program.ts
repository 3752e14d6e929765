/**
 * The program that tests start as processes: built where the runner has built it (scripts/test.ts), else the sources. Loading
 * more than a thousand modules takes two thirds of a start.
 */
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Holds `bin`, `docs` and all else that belongs to the program. */
export const PROGRAM_FOLDER = join(import.meta.dirname, '../..')

const isBuilt = process.env['SENDWRIGHT_TEST_BUILT'] === 'yes'

export const MAIN = join(PROGRAM_FOLDER, isBuilt ? 'dist/main.js' : 'src/main.ts')

/** What is compiled once for all starts; Node compares it with the sources. */
export const COMPILE_CACHE = process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'sendwright-compile-cache')
