/**
 * What to write so that a domain's records are there, and nothing of anybody else is touched. Pure.
 *
 * 1. Of each set only the rivals of a record count: the texts that begin with `v=spf1` for SPF, all values of a name that is
 *    there for one record alone. Everything else in the set stays.
 * 2. SPF that stands there is extended, a DMARC policy and a TLS report address are left.
 * 3. Other rivals are replaced if this service has written them, or if the caller says so for that purpose; else the record
 *    is left, with the reason.
 * 4. To undo is the reverse of each change, for as long as what was written stands as it was written.
 */
import { createHash } from 'node:crypto'
import { plainText, quotedText, type WritableType } from '../../protocols/dns/presentation.ts'
import { includesHost, isSpfRecord, withInclude } from '../../protocols/dns/spf.ts'
import { type RecordSet, type SetChange, setKey, valuesAfter, type Zone } from './provider.ts'

export const WRITTEN_PURPOSES = [
  ...(['dkim', 'spf', 'tracking', 'mx', 'return-path-spf', 'return-path-mx'] as const),
  ...(['mta-sts', 'mta-sts-host', 'dmarc', 'tls-rpt'] as const),
] as const
export type WrittenPurpose = (typeof WRITTEN_PURPOSES)[number]

/** What the domain asks for at one name. */
export interface Wanted {
  purpose: WrittenPurpose
  name: string
  type: WritableType
  /** Canonical. */
  values: readonly string[]
  /** Why it is not written whatever stands there; absent: it may be. */
  hold?: string
}

/** One line of what is shown before it is written. */
export interface PlanEntry {
  purpose: WrittenPurpose
  name: string
  type: WritableType
  action: 'add' | 'change' | 'remove' | 'unchanged' | 'left'
  add: readonly string[]
  remove: readonly string[]
  /** Why it is left; else empty. */
  reason: string
}

/** A change as it is stored. */
export interface StoredChange extends SetChange {
  purposes: readonly WrittenPurpose[]
  /** Null: not known. */
  written: boolean | null
}

export interface Plan {
  entries: readonly PlanEntry[]
  changes: readonly StoredChange[]
}

/** What stands at the provider. */
export interface Standing {
  /** By name; null or absent: no zone of the provider holds the name. */
  zones: ReadonlyMap<string, Zone | null>
  /** By `setKey`. */
  sets: ReadonlyMap<string, RecordSet>
}

interface PlanOptions {
  includeHost: string
  /** Values that this service has written, as `writtenKey` writes them. */
  written: ReadonlySet<string>
  /** Purposes whose rivals the caller gives up. */
  replace: ReadonlySet<WrittenPurpose>
}

export const writtenKey = (name: string, type: string, value: string) => `${type} ${name} ${value}`

const TTL_SECONDS = 3600
const NO_ZONE = 'no zone of the provider holds the name'
const HOST_TYPES: readonly string[] = ['A', 'AAAA', 'CNAME']

const RIVALS: Partial<Record<WrittenPurpose, (text: string) => boolean>> = {
  spf: isSpfRecord,
  'return-path-spf': isSpfRecord,
  'mta-sts': (text) => /^v=STSv1(?:;|\s|$)/i.test(text),
  dmarc: (text) => /^\s*v\s*=\s*DMARC1/i.test(text),
  'tls-rpt': (text) => /^v=TLSRPTv1(?:;|\s|$)/i.test(text),
}

const REASONS: Record<WrittenPurpose, string> = {
  dkim: 'another key stands there',
  spf: 'there are several SPF records, which must be one',
  tracking: 'the name leads elsewhere',
  mx: 'the domain receives its mail elsewhere',
  'return-path-spf': 'there are several SPF records, which must be one',
  'return-path-mx': 'the host receives its mail elsewhere',
  'mta-sts': 'another policy stands there',
  'mta-sts-host': 'the name leads elsewhere',
  dmarc: 'there is a policy',
  'tls-rpt': 'there is an address for reports',
}

export function planRecords(
  wanted: readonly Wanted[],
  { zones, sets }: Standing,
  options: PlanOptions,
): Plan {
  const now = new Map(sets)
  const entries: PlanEntry[] = []
  const changes = new Map<string, StoredChange>()
  for (const one of wanted) {
    const entry = entryOf(one, zones, now, options)
    // Reports about TLS are of use where the mail comes here.
    if (
      one.purpose === 'tls-rpt' &&
      entries.some(({ purpose, action }) => purpose === 'mx' && action === 'left')
    )
      continue
    entries.push(entry)
    const zone = zones.get(one.name)
    if (!zone || (entry.action !== 'add' && entry.action !== 'change')) continue
    const key = setKey(one)
    const set = now.get(key)
    now.set(key, {
      ...{ name: one.name, type: one.type, handles: [], lock: null },
      ...{ ttlSeconds: set?.ttlSeconds ?? null, values: valuesAfter(set?.values ?? [], entry) },
    })
    changes.set(key, joined(changes.get(key), changeOf(entry, zone, sets.get(key))))
  }
  return { entries, changes: [...changes.values()] }
}

function changeOf(entry: PlanEntry, zone: Zone, set: RecordSet | undefined): StoredChange {
  const { name, type, add, remove, purpose } = entry
  const ttlSeconds = set ? set.ttlSeconds : Math.max(TTL_SECONDS, zone.ttlMin ?? 0)
  return { zone, name, type, ttlSeconds, remove, add, purposes: [purpose], written: null }
}

const joined = (one: StoredChange | undefined, other: StoredChange): StoredChange =>
  one === undefined
    ? other
    : {
        ...one,
        remove: [...one.remove, ...other.remove],
        add: [...one.add, ...other.add],
        purposes: [...one.purposes, ...other.purposes],
      }

function entryOf(wanted: Wanted, zones: Standing['zones'], sets: Standing['sets'], options: PlanOptions) {
  const { purpose, name, type, values } = wanted
  const entry = (action: PlanEntry['action'], more: Partial<PlanEntry> = {}): PlanEntry => ({
    ...{ purpose, name, type, action, add: [], remove: [], reason: '' },
    ...more,
  })
  const left = (reason: string) => entry('left', { reason })
  const zone = zones.get(name)
  if (!zone) return left(NO_ZONE)
  const set = sets.get(setKey(wanted))
  const rivals = (set?.values ?? []).filter((value) => RIVALS[purpose]?.(plainText(type, value)) ?? true)
  const stands = (value: string) => rivals.some((rival) => isSame(type, rival, value))
  const isSpf = purpose === 'spf' || purpose === 'return-path-spf'
  const missing = values.filter((value) => !stands(value))
  const isThere = isSpf
    ? rivals.length === 1 && includesHost(plainText(type, rivals[0] as string), options.includeHost)
    : missing.length === 0
  if (isThere) return entry('unchanged')
  const obstacle = wanted.hold ?? obstacleOf(wanted, zone, sets)
  if (obstacle !== null) return left(obstacle)
  if (rivals.length === 0) return entry('add', { add: values })
  if (isSpf && rivals.length === 1)
    return entry('change', {
      remove: rivals,
      add: rivals.map((rival) => quotedText(withInclude(plainText(type, rival), options.includeHost))),
    })
  const others = rivals.filter((rival) => !values.some((value) => isSame(type, rival, value)))
  const isOwn = (value: string) => options.written.has(writtenKey(name, type, value))
  const isKept = isSpf || purpose === 'dmarc' || purpose === 'tls-rpt'
  if (isKept || !(others.every(isOwn) || options.replace.has(purpose))) return left(REASONS[purpose])
  return entry(others.length > 0 ? 'change' : 'add', { remove: others, add: missing })
}

/** Why nothing can be written there; null: something can. */
function obstacleOf({ name, type }: Wanted, zone: Zone, sets: Standing['sets']): string | null {
  const here = [...sets.values()].filter((set) => set.name === name && set.values.length > 0)
  const lock = here.find((set) => set.type === type)?.lock ?? null
  if (lock !== null) return lock
  if (name !== zone.name && here.some((set) => set.type === 'NS')) return 'it is delegated to other servers'
  // A CNAME must stand alone (RFC 1034 §3.6.2), and a host must not have addresses of two services.
  const conflicting = type === 'CNAME' ? null : HOST_TYPES.includes(type) ? HOST_TYPES : ['CNAME']
  const other = here.find((set) => set.type !== type && (conflicting?.includes(set.type) ?? true))
  return other ? `the name has records of type ${other.type}` : null
}

const isSame = (type: WritableType, one: string, other: string): boolean =>
  one === other || plainText(type, one) === plainText(type, other)

/** Takes back what was written. What has changed since is left. */
export function planUndo(stored: readonly StoredChange[], { zones, sets }: Standing): Plan {
  const entries: PlanEntry[] = []
  const changes: StoredChange[] = []
  for (const change of stored.filter(({ written }) => written !== false)) {
    const { name, type, purposes } = change
    const zone = zones.get(name)
    const set = sets.get(setKey(change))
    const values = set?.values ?? []
    const reverse = { remove: change.add, add: change.remove.filter((value) => !values.includes(value)) }
    const base = { purpose: purposes[0] as WrittenPurpose, name, type, add: [], remove: [], reason: '' }
    const written = change.add.filter((value) => values.includes(value))
    if (!zone) {
      entries.push({ ...base, action: 'left', reason: NO_ZONE })
      continue
    }
    const obstacle = obstacleOf({ ...base, values: [] }, zone, sets)
    if (written.length === 0 && reverse.add.length === 0) entries.push({ ...base, action: 'unchanged' })
    else if (written.length < change.add.length || isSecondSpf(change, values))
      entries.push({ ...base, action: 'left', reason: 'it was changed since' })
    else if (obstacle !== null) entries.push({ ...base, action: 'left', reason: obstacle })
    else {
      entries.push({ ...base, ...reverse, action: reverse.add.length > 0 ? 'change' : 'remove' })
      const ttlSeconds = set ? set.ttlSeconds : change.ttlSeconds
      changes.push({ ...{ zone, name, type, ttlSeconds, purposes }, ...reverse, written: null })
    }
  }
  return { entries, changes }
}

/** The SPF record would come back beside one that somebody has made since. */
function isSecondSpf({ type, add, remove }: StoredChange, values: readonly string[]): boolean {
  const isSpf = (value: string) => type === 'TXT' && isSpfRecord(plainText(type, value))
  return remove.some(isSpf) && values.some((value) => isSpf(value) && !add.includes(value))
}

/** Whether a change stands at the provider. */
export const isWritten = ({ add, remove }: SetChange, values: readonly string[]): boolean =>
  add.every((value) => values.includes(value)) &&
  !remove.some((value) => values.includes(value) && !add.includes(value))

/** Names exactly these changes at that provider, so that what is written is what was shown. */
export function digestOf(provider: string, changes: readonly StoredChange[]): string {
  const facts = changes.map(({ zone, name, type, ttlSeconds, remove, add }) => [
    ...[zone.id, zone.name, name, type, ttlSeconds, remove, add],
  ])
  return createHash('sha256')
    .update(JSON.stringify([provider, facts]))
    .digest('hex')
    .slice(0, DIGEST_CHARS)
}

const DIGEST_CHARS = 32
