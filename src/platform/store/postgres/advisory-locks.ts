/**
 * Keys of PostgreSQL's advisory locks, which all programs on one database share. All are here, so that two of them
 * are never equal. Programs of two releases run side by side during an upgrade: a key must not get another meaning.
 * In statements they stand as `advisoryKey` makes them (pods/pod.ts), so that pods do not wait for each other.
 */

/** Serialises migrations of processes that start together. Session level. */
export const MIGRATION_LOCK = 7_309_453

/**
 * Held by `sendwright migrate` while it copies this database or into it; processes that start ask for it. Session level.
 * Releases before FIRST_START_LOCK had a key of its own hold it in their first start too. A process that starts in
 * that moment takes it for a copy and is refused, as long as such a release runs beside it.
 */
export const COPY_LOCK = 7_309_454

/**
 * Serialises the creation of the first account by processes that start together. Transaction level. An older release does
 * not wait for it, so that the very first start of a database is to be that of one release only.
 */
export const FIRST_START_LOCK = 7_309_455

/** Serialises changes to the partitions of events. Transaction level. */
export const EVENT_PARTITIONS_LOCK = 7_309_456

/** Serialises the creation of pods. The same in all pods of a database. Transaction level. */
export const PODS_LOCK = 7_309_457

/**
 * First of two keys, for changes to a family of domain names ("dkim" in ASCII). Pairs of 32-bit keys are another space than
 * single 64-bit keys. Transaction level.
 */
export const NAMES_LOCK_CLASS = 0x64_6b_69_6d
