/**
 * What a pod says of itself in the directory of all pods (directory.ts): each name by which a request finds its pod. Callers
 * write an entry in the transaction of the thing that it names. Without pods there is nothing to write.
 */
import { CompiledQuery, type Transaction } from 'kysely'
import type { Schema } from '../schema.ts'
import { type SqlValue, StaleWrite, type Statement, type Store } from '../store.ts'

/**
 * `key`: `secret_hmac` of an API key or a public key. `domain`: the name of a domain. `host`: a tracking host or a host of
 * return paths. `login`: of SMTP. `account`: its id. `user`: the address of a user.
 * `pod`: the name before secrets and tokens; of a former pod, too, all of which has moved here.
 * Of accounts that have moved here (decision 264): `link`: an id in links that name a former pod. `files`: an account and the
 * place where this pod still has its files.
 */
export type EntryKind = 'key' | 'domain' | 'host' | 'login' | 'account' | 'user' | 'pod' | 'link' | 'files'

export interface Entry {
  kind: EntryKind
  value: string
}

export const entriesOf = (kind: EntryKind, values: readonly string[]): Entry[] =>
  [...new Set(values)].map((value) => ({ kind, value }))

type OfPod = Pick<Store, 'pod'>

/** Rows of one statement. */
const ROWS_MAX = 500

/** Statements that fail their unit (StaleWrite) if another pod has one of the entries. */
export function enterStatements({ pod }: OfPod, entries: readonly Entry[]): Statement[] {
  if (pod === null) return []
  return portions(entries).map((some) => ({
    sql: `INSERT INTO sendwright_pods.entries (kind, value, pod) VALUES ${some.map(() => '(?, ?, ?)').join(', ')}
      ON CONFLICT (kind, value) DO UPDATE SET pod = excluded.pod WHERE entries.pod = excluded.pod`,
    values: some.flatMap(({ kind, value }) => [kind, value, pod]),
    expectRows: some.length,
  }))
}

export function leaveStatements({ pod }: OfPod, entries: readonly Entry[]): Statement[] {
  if (pod === null) return []
  return portions(entries).map((some) => ({
    sql: `DELETE FROM sendwright_pods.entries WHERE pod = ? AND (kind, value) IN (${some.map(() => '(?, ?)').join(', ')})`,
    values: [pod, ...some.flatMap(({ kind, value }) => [kind, value])],
  }))
}

/** @throws StaleWrite if another pod has one of them */
export const enter = (store: OfPod, tx: Transaction<Schema>, entries: readonly Entry[]): Promise<void> =>
  runAll(tx, enterStatements(store, entries))

export const leave = (store: OfPod, tx: Transaction<Schema>, entries: readonly Entry[]): Promise<void> =>
  runAll(tx, leaveStatements(store, entries))

function portions(entries: readonly Entry[]): Entry[][] {
  const found: Entry[][] = []
  for (let at = 0; at < entries.length; at += ROWS_MAX) found.push(entries.slice(at, at + ROWS_MAX))
  return found
}

/** Runs statements of the directory one after another. @throws StaleWrite */
export async function runAll(tx: Transaction<Schema>, statements: readonly Statement[]): Promise<void> {
  for (const statement of statements) {
    const { sql, values, expectRows } = statement
    let count = 0
    const text = sql.replaceAll('?', () => `$${++count}`)
    const { numAffectedRows } = await tx.executeQuery(CompiledQuery.raw(text, values as SqlValue[]))
    const affected = Number(numAffectedRows ?? 0)
    if (expectRows !== undefined && affected !== expectRows) throw new StaleWrite(statement, affected)
  }
}
