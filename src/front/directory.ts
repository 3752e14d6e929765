/**
 * What a front knows of pods: which one has a name, and where its nodes listen. Both are read from the schema
 * `sendwright_pods`, and kept in memory, so that the front goes on while the database is away.
 *
 * 1. A name that was found counts for FRESH_MS; after that it is looked up again. While the directory is away it counts for
 *    STALE_MAX_MS. One that was not found counts for ABSENT_MS, and never while the directory is away.
 * 2. Names that are looked up at the same time share one statement, and one runs at a time: whatever clients ask for, the
 *    database sees one connection and one statement of bounded size.
 * 3. The host of a pod's public URL is read with the list of pods. One that several pods have leads to none of them.
 * 4. After a failure nothing is asked for RETRY_MS, so that requests do not wait for an answer that does not come.
 */
import type { Logger } from 'pino'
import { pause } from '../base/flow/pause.ts'
import type { Clock } from '../base/time/clock.ts'
import { HOUR_MS } from '../base/time/durations.ts'

/** As the pods enter them (platform/store/pods/entries.ts); `host`: of a public URL, too. */
export interface Name {
  kind: 'key' | 'domain' | 'host' | 'login' | 'user' | 'pod' | 'account' | 'link'
  value: string
}

export interface Pod {
  name: string
  /** `host:port` of nodes that are alive. */
  http: readonly string[]
  smtp: readonly string[]
}

export type Directory = Awaited<ReturnType<typeof openDirectory>>

/** A name is not in memory, and cannot be looked up. */
export class DirectoryAway extends Error {
  override name = 'DirectoryAway'
}

/** Rows of one statement on the database of the directory. */
export type Query = (sql: string, values: unknown[]) => Promise<Record<string, unknown>[]>

/** A front that can read the directory knows of a change after this time. */
export const FRESH_MS = 5_000
const ABSENT_MS = 1_000
const STALE_MAX_MS = HOUR_MS
const RETRY_MS = 500
const ANSWER_MAX_MS = 3_000
const PODS_EVERY_MS = 1_000
/** Each takes some 200 bytes. Apart, so that names that nobody has push no others out. */
const FOUND_MAX = 100_000
const ABSENT_MAX = 10_000
/** Names looked up by one statement. */
const LOOKED_UP_MAX = 1_000
/** Names that wait for theirs. */
const WAITING_MAX = 10_000
/** No name is longer: an address has 320 characters at most. */
const VALUE_LENGTH_MAX = 320

const FIND = `SELECT kind, value, pod FROM sendwright_pods.entries
  WHERE (kind, value) IN (SELECT kind, value FROM unnest($1::text[], $2::text[]) AS asked (kind, value))`
/** A pod that was moved has its hosts no more. The directory may be older than its column `hosts`. */
const PODS = `SELECT name, http, smtp, to_jsonb(pods) ->> 'hosts' AS hosts FROM sendwright_pods.pods
  WHERE state <> 'moved' ORDER BY name`

/** Reads the list of pods once, whether that succeeds or not, and from then on every second. */
export async function openDirectory(parts: { query: Query; clock: Clock; log: Logger }) {
  const { query, clock, log } = parts
  const found = new Map<string, { pod: string; at: number }>()
  const absent = new Map<string, number>()
  const waiting = new Map<string, { name: Name; settled: PromiseWithResolvers<string | null> }>()
  let pods = new Map<string, Pod>()
  /** Name of the only pod that has it in a public URL. */
  let publicHosts = new Map<string, string>()
  let podsAt = Number.NEGATIVE_INFINITY
  let awayUntil = Number.NEGATIVE_INFINITY
  let isAway = false
  let isAsking = false
  const closing = new AbortController()

  /** @throws DirectoryAway */
  async function ask(sql: string, values: unknown[]): Promise<Record<string, unknown>[]> {
    const over = new AbortController()
    try {
      const late = pause(clock, ANSWER_MAX_MS, over.signal).then(() => {
        throw new Error(`no answer within ${ANSWER_MAX_MS} ms`)
      })
      late.catch(() => {})
      const rows = await Promise.race([query(sql, values), late])
      if (isAway) log.info('the directory of pods can be read again')
      isAway = false
      return rows
    } catch (cause) {
      if (!isAway) log.warn({ err: cause }, 'the directory of pods cannot be read: what is in memory counts')
      isAway = true
      awayUntil = clock.monotonic() + RETRY_MS
      throw new DirectoryAway('The directory of pods cannot be read', { cause })
    } finally {
      over.abort()
    }
  }

  async function readPods(): Promise<void> {
    const rows = await ask(PODS, [])
    pods = new Map(rows.map(({ name, http, smtp }) => [String(name), podOf(String(name), http, smtp)]))
    publicHosts = soleOwners(rows)
    podsAt = clock.monotonic()
  }

  async function keepReading(): Promise<void> {
    while (!closing.signal.aborted) {
      await pause(clock, PODS_EVERY_MS, closing.signal)
      if (!closing.signal.aborted) await readPods().catch(() => {})
    }
  }

  async function lookUp(): Promise<void> {
    if (isAsking) return
    isAsking = true
    while (waiting.size > 0) {
      const batch = [...waiting].slice(0, LOOKED_UP_MAX)
      for (const [key] of batch) waiting.delete(key)
      const names = batch.map(([, { name }]) => name)
      try {
        const rows = await ask(FIND, [names.map(({ kind }) => kind), names.map(({ value }) => value)])
        const owners = new Map(rows.map(({ kind, value, pod }) => [`${kind} ${value}`, String(pod)]))
        for (const [key, { settled }] of batch) settled.resolve(keep(key, owners.get(key)))
      } catch (error) {
        for (const [, { settled }] of batch) settled.reject(error)
      }
    }
    isAsking = false
  }

  function keep(key: string, pod: string | undefined): string | null {
    const now = clock.monotonic()
    found.delete(key)
    absent.delete(key)
    if (pod === undefined) bounded(absent, ABSENT_MAX).set(key, now)
    else bounded(found, FOUND_MAX).set(key, { pod, at: now })
    return pod ?? null
  }

  /** The name of its pod. */
  async function ownerOf(name: Name): Promise<string | null> {
    const sole = name.kind === 'host' ? publicHosts.get(name.value) : undefined
    if (sole !== undefined) return sole
    if (name.value.length > VALUE_LENGTH_MAX || name.value.includes('\0')) return null
    const key = `${name.kind} ${name.value}`
    const now = clock.monotonic()
    const known = found.get(key)
    if (known && now - known.at < FRESH_MS) return known.pod
    if (now - (absent.get(key) ?? Number.NEGATIVE_INFINITY) < ABSENT_MS) return null
    try {
      if (now < awayUntil || (!waiting.has(key) && waiting.size >= WAITING_MAX))
        throw new DirectoryAway('The directory of pods cannot be asked now')
      const entry = waiting.get(key) ?? { name, settled: Promise.withResolvers<string | null>() }
      waiting.set(key, entry)
      void lookUp()
      return await entry.settled.promise
    } catch (error) {
      if (known && now - known.at < STALE_MAX_MS) return known.pod
      throw error
    }
  }

  const current = () => (clock.monotonic() - podsAt < STALE_MAX_MS ? pods : new Map<string, Pod>())

  await readPods().catch(() => {})
  void keepReading()
  return {
    /**
     * The pod of the first name that one has. Null: none has any of them.
     * @throws DirectoryAway where that cannot be known now
     */
    async find(names: readonly Name[]): Promise<Pod | null> {
      for (const name of names) {
        const owner = await ownerOf(name)
        const pod = owner === null ? undefined : current().get(owner)
        if (pod !== undefined) return pod
      }
      return null
    },
    /** The pod of what no pod has, which answers as contracts demand. Null: no pod has a node. */
    fallback: (): Pod | null => [...current().values()].find(({ http }) => http.length > 0) ?? null,
    /** Since the list of pods was read; infinite before the first time. */
    ageMs: () => clock.monotonic() - podsAt,
    close: () => closing.abort(),
  }
}

/** Makes room for one more: the oldest leaves. */
function bounded<V>(map: Map<string, V>, max: number): Map<string, V> {
  const oldest = map.keys().next()
  if (map.size >= max && !oldest.done) map.delete(oldest.value)
  return map
}

/** Hosts of public URLs that one pod has and no other. */
function soleOwners(rows: readonly Record<string, unknown>[]): Map<string, string> {
  const pairs = rows.flatMap(({ name, hosts }) => textsIn(hosts).map((host) => [host, String(name)] as const))
  const owners = Map.groupBy(pairs, ([host]) => host)
  return new Map(pairs.filter(([host]) => owners.get(host)?.length === 1))
}

const podOf = (name: string, http: unknown, smtp: unknown): Pod => ({
  ...{ name, http: textsIn(http), smtp: textsIn(smtp) },
})

/** Addresses or hosts. What is no JSON array of texts is empty: one pod's row must not stop the others. */
function textsIn(text: unknown): string[] {
  try {
    const list: unknown = JSON.parse(String(text))
    return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : []
  } catch {
    return []
  }
}
