/** The report of a task: what was found, what became of it, and what is kept and why. Signed when it is read. */
import { createHmac } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { actionOf } from '../../platform/http/rights/audit.ts'
import type { PersonTaskRow } from '../../platform/store/schema.ts'
import { isUpgradeCopy } from '../../platform/store/sqlite/upgrade-copy.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Fate } from './fates.ts'
import { OTHER_STORES, STORES } from './stores.ts'

/** By store. */
export type Counts = Record<string, { found: number } & Partial<Record<Fate['kind'] | 'exported', number>>>

/** The newest; older ones are in the audit log. */
const BACKUPS_MAX = 1_000

export async function reportOf(
  store: Store,
  dataFolder: string,
  task: PersonTaskRow,
  left: readonly string[],
) {
  const at = (ms: number | null) => (ms === null ? null : formatRfc3339(new Date(ms)))
  const counts = JSON.parse(task.counts_json) as Counts
  const keptHere = Object.entries(counts).flatMap(([name, { kept = 0 }]) =>
    kept > 0 ? [{ store: name, why: STORES[name]?.why ?? '' }] : [],
  )
  const keptElsewhere = Object.entries(OTHER_STORES).flatMap(([name, { does, why }]) =>
    does === 'kept' ? [{ store: name, why }] : [],
  )
  return {
    ...{ id: task.id, kind: task.kind, dry_run: task.dry_run === 1, address_hash: task.address_hash },
    scope: task.everywhere === 1 ? ('service' as const) : ('account' as const),
    ...{ created_at: at(task.created_at) as string, finished_at: at(task.finished_at) as string },
    counts,
    kept: [...keptHere, ...keptElsewhere],
    backups: await backupsOf(store, dataFolder),
    left: [...left, store.kind === 'postgres' ? POSTGRES : SQLITE].filter((text) => text !== ''),
  }
}

const SQLITE =
  'Unused parts of pages that a release without secure_delete wrote may hold old rows until they are written again; a restored backup has none.'
const POSTGRES =
  'Dead rows keep their bytes in heap pages until the vacuumed space is used again. The log of PostgreSQL (WAL), its archive and its standbys keep changes by their own settings. Backups by its own means are not known here.'

/** Backups that were made through the service, and copies before an upgrade, newest first. They still hold the person. */
async function backupsOf(store: Store, dataFolder: string) {
  const rows = await store.db
    .selectFrom('audit')
    .select('created_at')
    .where('action', '=', actionOf('startBackup'))
    .where('status', '=', 202)
    .orderBy('id', 'desc')
    .limit(BACKUPS_MAX)
    .execute()
  const names = (await readdir(dataFolder)).filter(isUpgradeCopy)
  const copies = await Promise.all(names.map(async (name) => (await stat(join(dataFolder, name))).mtimeMs))
  return [
    ...rows.map(({ created_at: at }) => ({ kind: 'backup' as const, at })),
    ...copies.map((at) => ({ kind: 'copy before an upgrade' as const, at })),
  ].map(({ kind, at }) => ({ kind, made_at: formatRfc3339(new Date(Math.floor(at))) }))
}

/** HMAC-SHA-256 (RFC 2104) of the JSON of the report without blanks, in hex, by the account's HTTP signing key. */
export const signatureOf = (signingKey: string, report: unknown): string =>
  createHmac('sha256', signingKey).update(JSON.stringify(report)).digest('hex')
