/** What is written at a DNS provider, and what a provider has to do for that. Types, and the one error. */
import { printableLine } from '../../base/printable.ts'
import type { WritableType } from '../../protocols/dns/presentation.ts'

export interface Zone {
  /** Normalised. */
  name: string
  /** As the provider names it. */
  id: string
  /** Shorter lives are refused; null: any. */
  ttlMin: number | null
}

/** All records of one name and type as they stand at the provider. */
export interface RecordSet {
  name: string
  type: string
  /** Null: the provider chooses. */
  ttlSeconds: number | null
  /** In canonical form (`presentation.ts`) where the type is understood. */
  values: readonly string[]
  /** In the same order, by what the provider names each record: an id, or its text there. */
  handles: readonly string[]
  /** Why this service must not write it, to follow "it"; null: it may. */
  lock: string | null
}

export const setKey = ({ name, type }: Pick<RecordSet, 'name' | 'type'>) => `${type} ${name}`

/** Records of one set that come and go; the others of the set stay as they are. */
export interface SetChange {
  zone: Zone
  name: string
  type: WritableType
  /** The TTL of the set as it stands, else of the new one. */
  ttlSeconds: number | null
  remove: readonly string[]
  add: readonly string[]
}

export interface ToWrite {
  change: SetChange
  /** The set as it was read; undefined: there was none. */
  current: RecordSet | undefined
}

export interface DnsProvider {
  /** The longest zone that the credentials see and that holds the name; null: none. @throws ProviderFault */
  zoneOf(name: string): Promise<Zone | null>
  /** All sets of that very name. @throws ProviderFault */
  read(zone: Zone, name: string): Promise<RecordSet[]>
  /** Writes changes of one zone: all or none where the provider can. @throws ProviderFault */
  write(zone: Zone, changes: readonly ToWrite[]): Promise<void>
}

/**
 * `login`: the credentials do not count, or not for this; `limit`: too many requests; `changed`: something else stands there by
 * now; `refused`: any other refusal; `away`: no answer, so that a change may have been made or not.
 */
type FaultKind = 'login' | 'limit' | 'changed' | 'refused' | 'away'

const MESSAGE_LENGTH_MAX = 400

/** Why a provider did not do what it was asked. The message is for the caller, and has no secret. */
export class ProviderFault extends Error {
  readonly kind: FaultKind
  /** Whole seconds after which it is worth another try; undefined: not said. */
  readonly retrySeconds: number | undefined

  constructor(kind: FaultKind, message: string, retrySeconds?: number) {
    super(printableLine(message).slice(0, MESSAGE_LENGTH_MAX))
    this.kind = kind
    this.retrySeconds = retrySeconds
  }
}

/** The values of a set after a change. */
export const valuesAfter = (
  values: readonly string[],
  { remove, add }: Pick<SetChange, 'remove' | 'add'>,
) => [...values.filter((value) => !remove.includes(value)), ...add.filter((value) => !values.includes(value))]
