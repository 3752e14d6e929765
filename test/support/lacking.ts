import { spawnSync } from 'node:child_process'

/** Why a test that runs this program is skipped; false where it is installed. */
export const lacking = (program: string): string | false =>
  spawnSync(program, ['--version']).error !== undefined && `needs ${program}`
