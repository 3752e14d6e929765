/** The dashboard as it is served. */
import assert from 'node:assert/strict'
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

let built: SpawnSyncReturns<string> | undefined

/** Builds the dashboard unless that is done, as after an install; returns the folder that holds it. */
export function builtDashboard(): string {
  built ??= spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { encoding: 'utf8' })
  assert.equal(built.status, 0, built.stderr)
  return join(ROOT, 'web/dist')
}
