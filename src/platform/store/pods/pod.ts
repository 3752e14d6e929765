/**
 * A pod: an installation that has a schema of its own in a PostgreSQL that it shares with others (decision 254). Its
 * statements name no schema; each connection has the pod's as its whole `search_path`.
 */

/** What a schema may be named, with room for its prefix in PostgreSQL's 63 characters. */
const POD = /^[a-z][a-z0-9_]{0,39}$/

/** @throws Error unless it can be part of a schema's name as it stands */
export function podName(text: string): string {
  if (!POD.test(text))
    throw new Error(
      'expected up to 40 lower-case letters, digits and underscores, the first of them a letter',
    )
  return text
}

export const SCHEMA_PREFIX = 'pod_'

/** Needs no quotes. */
export const schemaOf = (pod: string): string => SCHEMA_PREFIX + podName(pod)

/** The name before the dot of what `withPod` has made. */
const NAMED = /^([a-z][a-z0-9_]{0,39})\./

/** Puts the pod's name in front of a secret or token, by which a front finds the pod (front/names.ts). Without pods: as it is. */
export const withPod = (pod: string | null, text: string): string => (pod === null ? text : `${pod}.${text}`)

/** The former text, whichever pod it names: all that a pod had may have moved to this one. */
export const withoutPod = (text: string): string => text.replace(NAMED, '')

export const podNamedBy = (text: string): string | null => NAMED.exec(text)?.[1] ?? null

/**
 * SQL for the key of an advisory lock, as the session's pod has it: PostgreSQL's locks are of a whole database. Without a pod
 * it is the lock itself.
 */
export const advisoryKey = (lock: number): string => `(${lock}::bigint # ${POD_DIGEST})`

/** The session's, also before the schema is made. */
const SEARCH_PATH = `current_setting('search_path')`
const IS_POD = `starts_with(${SEARCH_PATH}, '${SCHEMA_PREFIX}')`

const POD_DIGEST = `CASE WHEN ${IS_POD} THEN hashtextextended(${SEARCH_PATH}, 0) ELSE 0 END`

/** SQL for a text before what a lock is about, for locks with a digest as the second of two keys. */
export const LOCK_PREFIX = `CASE WHEN ${IS_POD} THEN ${SEARCH_PATH} || ' ' ELSE '' END`
