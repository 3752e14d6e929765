/** DKIM keys: generated, sealed at rest, opened once per process for signing. Private keys never leave this file. */
import { createPrivateKey } from 'node:crypto'
import { createCache, type MaybePromise } from '../../../base/flow/cache.ts'
import { newId } from '../../../base/ids.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { DkimKeyRow } from '../../../platform/store/schema.ts'
import type { Sealer } from '../../../platform/store/secrets/sealing.ts'
import type { Store } from '../../../platform/store/store.ts'
import {
  type DkimAlgorithm,
  type DkimKey,
  dkimKeyToPem,
  generateDkimKey,
  publicRecord,
} from '../../../protocols/dkim/key-material.ts'
import type { SigningKey } from '../../../protocols/dkim/sign.ts'

const PURPOSE = 'dkim-key'
/** A change on another node takes effect after at most this time (domain-keys.md rule 11). */
const REMEMBER_MS = 5_000
const AUTHORITIES_MAX = 10_000
/** Keys of all cached authorities; those of deleted and rotated ones are evicted in the end. */
const OPENED_MAX = 2 * AUTHORITIES_MAX

export interface SigningKeys {
  /** The active keys of an authority, oldest first; each KeyObject is created once. */
  active(authority: string): MaybePromise<readonly SigningKey[]>
  changed(authority: string): void
}

export function createSigningKeys(store: Store, sealer: Sealer, clock: Clock): SigningKeys {
  /** Opening and parsing an RSA key costs about 0.5 ms, so keys stay open across cache reloads. */
  const opened = new Map<string, SigningKey>()

  function open(row: DkimKeyRow): SigningKey {
    const known = opened.get(row.id)
    if (known && known.selector === row.selector) return known
    const key: SigningKey = {
      domain: row.authority,
      selector: row.selector,
      algorithm: row.algorithm as DkimAlgorithm,
      privateKey: createPrivateKey(sealer.open(PURPOSE, row.private_key_sealed).toString()),
    }
    if (opened.size >= OPENED_MAX) opened.delete(opened.keys().next().value as string)
    opened.set(row.id, key)
    return key
  }

  const cache = createCache({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: AUTHORITIES_MAX,
    shared: { changes: store.changes, topic: 'signing-keys' },
    async load(authority: string) {
      const rows = await store.db
        .selectFrom('dkim_keys')
        .selectAll()
        .where('authority', '=', authority)
        .where('active', '=', 1)
        .orderBy('id')
        .execute()
      return rows.map(open)
    },
  })
  return { active: (authority) => cache.get(authority), changed: (authority) => cache.forget(authority) }
}

export interface NewKey {
  authority: string
  selector: string
  algorithm: DkimAlgorithm
  bits: number
  /** An imported pair; default: a new one is generated. */
  pair?: DkimKey
}

interface NewRow extends NewKey {
  accountId: string
  active: boolean
  /** Begins to sign when its record is first found valid. */
  activates?: boolean
  managed?: boolean
}

/** A new key pair as a row, its private key sealed. */
export async function newDkimKeyRow(sealer: Sealer, key: NewRow, now: number): Promise<DkimKeyRow> {
  const pair = key.pair ?? (await generateDkimKey(key.algorithm, key.bits))
  return {
    id: newId(now),
    account_id: key.accountId,
    authority: key.authority,
    selector: key.selector,
    algorithm: key.algorithm,
    private_key_sealed: sealer.seal(PURPOSE, dkimKeyToPem(pair)),
    public_record: publicRecord(pair),
    active: key.active ? 1 : 0,
    created_at: Math.floor(now),
    next_selector: null,
    check_json: null,
    activates: key.activates ? 1 : 0,
    managed: key.managed ? 1 : 0,
  }
}
