import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where this program is installed: a clone, or what a release has unpacked. */
export const PROGRAM_FOLDER = join(import.meta.dirname, '../../..')

/** Version of this program, from its package.json. */
export const VERSION = (
  JSON.parse(readFileSync(join(PROGRAM_FOLDER, 'package.json'), 'utf8')) as { version: string }
).version
