/**
 * Keeps the addresses of a pod's live nodes in the directory of pods (store/pods/directory.ts), for whoever passes
 * connections on.
 *
 * 1. Each node notes its own row every SAY_EVERY_MS, by the database's time, and removes rows of its pod that are older than
 *    GONE_AFTER_MS.
 * 2. In the same unit it writes the pod's row anew from those that are left, with the hosts of the pod's public URLs: these
 *    stay when no node is left, so that what is for them still finds the pod.
 * 3. A node that stops removes itself first, while it still accepts connections.
 */
import type { Logger } from 'pino'
import { runAll } from '../store/pods/entries.ts'
import type { Statement, Store } from '../store/store.ts'

const SAY_EVERY_MS = 2_000
const GONE_AFTER_MS = 10_000

/** "host:port"; null: that port is closed. */
export interface Places {
  http: string | null
  smtp: string | null
}

/** The statement's start: Citus takes no time that changes within a statement. */
const NOW = '(extract(epoch FROM now()) * 1000)::bigint'

/** `hosts`: of the pod's public URLs, the same for all of its nodes. Resolves when the node is in the directory. */
export async function keepPresence(
  { store, id, log }: { store: Pick<Store, 'transaction'> & { pod: string }; id: string; log: Logger },
  { http, smtp }: Places,
  hosts: readonly string[],
) {
  const { pod } = store
  const summary: Statement = {
    sql: `UPDATE sendwright_pods.pods SET http = alive.http, smtp = alive.smtp, hosts = ?, seen_at = ${NOW}
      FROM (SELECT coalesce(json_agg(http ORDER BY http) FILTER (WHERE http IS NOT NULL), '[]')::text AS http,
          coalesce(json_agg(smtp ORDER BY smtp) FILTER (WHERE smtp IS NOT NULL), '[]')::text AS smtp
        FROM sendwright_pods.nodes WHERE pod = ?) AS alive
      WHERE name = ?`,
    values: [JSON.stringify(hosts), pod, pod],
  }
  /** Nodes of a pod write one after another, so that each sees what the others have written. */
  const lock: Statement = {
    sql: 'SELECT name FROM sendwright_pods.pods WHERE name = ? FOR UPDATE',
    values: [pod],
  }
  // Not as a unit of `commit`, which may wait with others for their rows while it holds this one.
  const write = (statements: readonly Statement[]) =>
    store.transaction((tx) => runAll(tx, [lock, ...statements, summary]))
  const say = () =>
    write([
      {
        sql: `INSERT INTO sendwright_pods.nodes (id, pod, http, smtp, seen_at) VALUES (?, ?, ?, ?, ${NOW})
          ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`,
        values: [id, pod, http, smtp],
      },
      {
        sql: `DELETE FROM sendwright_pods.nodes WHERE pod = ? AND seen_at < ${NOW} - ${GONE_AFTER_MS}`,
        values: [pod],
      },
    ])
  await say()
  let saying: Promise<unknown> = Promise.resolve()
  let isSaying = false
  const timer = setInterval(() => {
    if (isSaying) return
    isSaying = true
    saying = say()
      .catch((err: unknown) =>
        log.warn({ err }, 'cannot say in the directory of pods that this node is alive'),
      )
      .finally(() => {
        isSaying = false
      })
  }, SAY_EVERY_MS)
  return {
    /** Removes this node. */
    async close(): Promise<void> {
      clearInterval(timer)
      await saying
      await write([{ sql: 'DELETE FROM sendwright_pods.nodes WHERE id = ?', values: [id] }]).catch(
        (err: unknown) => log.warn({ err }, 'cannot leave the directory of pods'),
      )
    },
  }
}

const ANY = new Set(['0.0.0.0', '::'])

/** Where others reach a listener: `named` by the settings, or its own address unless that is any of the machine. */
export function placeOf(
  { named, host, hostName }: { named: string | null; host: string; hostName: string },
  port: number,
): string {
  const name = named ?? (ANY.has(host) ? hostName : host)
  return name.includes(':') ? `[${name}]:${port}` : `${name}:${port}`
}
