/**
 * The rules of DKIM keys (domain-keys.md): created or imported inactive, activated when DNS has their record, never
 * exported. A key belongs to one authority of one account, which has at most three of them besides those of
 * automatic sender security.
 */

import { BadRequest, NotFound } from '../../../base/process/errors.ts'
import type { Core } from '../../../core.ts'
import type { DkimKeyRow } from '../../../platform/store/schema.ts'
import type { Db } from '../../../platform/store/store.ts'
import { type DkimKey, readDkimKey } from '../../../protocols/dkim/key-material.ts'
import { type DnsTargets, shownSelector } from '../dns/dns-records.ts'
import { lookUpKey, storeKeyLookup } from '../dns/verification.ts'
import { type Domain, domainOfRow } from '../domain.ts'
import { ancestorsOf, isBelow } from '../names/domain-names.ts'
import { lockNames } from '../names/name-lock.ts'
import { type NewKey, newDkimKeyRow, type SigningKeys } from './signing-keys.ts'

export interface KeyParts
  extends Pick<Core, 'store' | 'sealer' | 'clock' | 'domains' | 'resolver' | 'allow'> {
  signingKeys: SigningKeys
  spfIncludeHost: string
  authorityPort?: number
  targets: DnsTargets
}

const KEYS_PER_AUTHORITY_MAX = 3

const KEY_NOT_FOUND = 'domain key not found'
const MANAGED = 'domain key is managed automatically'

/** Whether the account may have keys for `authority`: a domain of its own, or the DKIM host of one. */
export async function ownsAuthority(db: Db, accountId: string, authority: string) {
  const row = await db
    .selectFrom('domains')
    .select('id')
    .where('account_id', '=', accountId)
    .where((eb) => eb.or([eb('name', '=', authority), eb('dkim_authority', '=', authority)]))
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** All keys of an authority, managed and unmanaged, oldest first. */
export async function keysOf(db: Db, accountId: string, authority: string): Promise<DkimKeyRow[]> {
  return db
    .selectFrom('dkim_keys')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('authority', '=', authority)
    .orderBy('id')
    .execute()
}

/** Clients match this text when a selector is in use. */
const DUPLICATE_KEY = 'failed to create domain key: duplicate key'
const IMPORT_FAILED = 'failed to import domain key'

/** The lines around a PEM block (RFC 7468 §2), and the label of PKCS #1 (RFC 8017 appendix A.1.2). */
const PEM_BEGIN = '-----BEGIN '
const PEM_END = '-----END '
const PKCS1_LABEL = 'RSA PRIVATE KEY-----'

/**
 * Reads the PEM of an import. @throws BadRequest for anything except a usable RSA key in PKCS #1, naming the fault
 */
export async function readImportedKey(pem: string): Promise<DkimKey> {
  if (!pem.includes(PEM_BEGIN) || !pem.includes(PEM_END)) {
    throw new BadRequest(`${IMPORT_FAILED}: failed to parse PEM`)
  }
  const key = pem.includes(PEM_BEGIN + PKCS1_LABEL) ? await readDkimKey(pem).catch(() => null) : null
  if (key?.algorithm === 'rsa') return key
  throw new BadRequest(`${IMPORT_FAILED}: failed to parse private key: key must be PKCS1 format`)
}

/**
 * Creates or imports a key, inactive.
 * @throws NotFound for an authority that is not the account's; BadRequest for a fourth key, a used selector, an
 *   imported key that contradicts DNS
 */
export async function createKey(parts: KeyParts, accountId: string, wanted: NewKey): Promise<DkimKeyRow> {
  const { store } = parts
  await checkFree(store.db, accountId, wanted)
  const row = await newDkimKeyRow(parts.sealer, { ...wanted, accountId, active: false }, parts.clock.now())
  if (wanted.pair) await checkPublished(parts, row)
  await store
    .transaction(async (tx) => {
      await lockNames(store, tx, wanted.authority)
      await checkFree(tx, accountId, wanted)
      await tx.insertInto('dkim_keys').values(row).execute()
    })
    .catch((error: unknown) => {
      throw isUniqueViolation(error) ? new BadRequest(DUPLICATE_KEY, { cause: error }) : error
    })
  return row
}

/** PostgreSQL's error code for a duplicate key, which two concurrent transactions can cause. */
export const isUniqueViolation = (error: unknown): boolean => (error as { code?: unknown }).code === '23505'

async function checkFree(db: Db, accountId: string, { authority, selector }: NewKey) {
  if (!(await ownsAuthority(db, accountId, authority))) throw new NotFound('domain not found')
  const keys = await db.selectFrom('dkim_keys').selectAll().where('authority', '=', authority).execute()
  if (isTaken(keys, selector)) throw new BadRequest(DUPLICATE_KEY)
  if (keys.filter((key) => key.managed === 0).length >= KEYS_PER_AUTHORITY_MAX)
    throw new BadRequest(`maximum of ${KEYS_PER_AUTHORITY_MAX} domain keys reached for ${authority}`)
}

const isTaken = (keys: readonly DkimKeyRow[], selector: string) =>
  keys.some((key) => key.selector === selector || key.next_selector === selector)

/** An existing record must publish the imported key; no record, or no answer, does not contradict it. */
async function checkPublished(parts: KeyParts, row: DkimKeyRow): Promise<void> {
  const { check } = await lookUpKey(parts, row, null)
  const hasKey = check.found.some((text) => /(?:^|[;\s])p\s*=/.test(text))
  if (check.answered && !check.valid && hasKey)
    throw new BadRequest('pem does not match the public key in DNS')
}

/** @throws NotFound when the account has no such key, BadRequest for a managed one */
async function findKey(db: Db, accountId: string, authority: string, selector: string) {
  const all = await keysOf(db, accountId, authority)
  const key = all.find((candidate) => shownSelector(candidate) === selector)
  if (!key) throw new NotFound(KEY_NOT_FOUND)
  if (key.managed === 1) throw new BadRequest(MANAGED)
  return { key, all }
}

/** Lets a key sign, if DNS has its record now. @throws NotFound, BadRequest when the record is not valid */
export async function activateKey(parts: KeyParts, accountId: string, authority: string, selector: string) {
  const { key } = await findKey(parts.store.db, accountId, authority, selector)
  const lookup = await lookUpKey(parts, key, null)
  const isValid = lookup.check.valid && lookup.check.answered
  await parts.store.transaction(async (tx) => {
    await lockNames(parts.store, tx, authority)
    const stored = await storeKeyLookup(tx, lookup)
    if (!stored) throw new NotFound(KEY_NOT_FOUND)
    if (!isValid) return
    await tx.updateTable('dkim_keys').set({ active: 1, activates: 0 }).where('id', '=', key.id).execute()
    await tx
      .updateTable('domains')
      .set({ signing_authority: null })
      .where('dkim_authority', '=', authority)
      .execute()
  })
  if (!isValid && key.active === 0)
    throw new BadRequest('cannot activate domain key: dns record is not valid')
  await invalidateCaches(parts, accountId, authority)
}

export async function deactivateKey(parts: KeyParts, accountId: string, authority: string, selector: string) {
  const { key } = await findKey(parts.store.db, accountId, authority, selector)
  await parts.store.db
    .updateTable('dkim_keys')
    .set({ active: 0, activates: 0 })
    .where('id', '=', key.id)
    .execute()
  await invalidateCaches(parts, accountId, authority)
}

/** Deletes a key permanently. @throws NotFound, BadRequest for the only active one */
export async function deleteKey(parts: KeyParts, accountId: string, authority: string, selector: string) {
  await parts.store.transaction(async (tx) => {
    await lockNames(parts.store, tx, authority)
    const { key, all } = await findKey(tx, accountId, authority, selector)
    const others = all.some((other) => other.id !== key.id && other.active === 1)
    if (key.active === 1 && !others)
      throw new BadRequest('cannot delete domain key: must have at least one active domain key')
    await tx.deleteFrom('dkim_keys').where('id', '=', key.id).execute()
  })
  await invalidateCaches(parts, accountId, authority)
}

/** Invalidates the cached keys of an authority and the domains that it signs for. */
async function invalidateCaches(parts: KeyParts, accountId: string, authority: string): Promise<void> {
  parts.signingKeys.changed(authority)
  const signedFor = await parts.store.db
    .selectFrom('domains')
    .select(['id', 'name'])
    .where('account_id', '=', accountId)
    .where('dkim_authority', '=', authority)
    .execute()
  for (const domain of signedFor) parts.domains.changed(domain)
}

/**
 * Renames the selector of the domain's current key: the one that signs, else the oldest. A key that signs keeps its
 * old selector until the new one is found in DNS.
 * @throws BadRequest for a used selector or a managed key, NotFound when the authority has no key
 */
export async function renameSelector(parts: KeyParts, domain: Domain, selector: string): Promise<void> {
  const authority = domain.dkimHost
  await parts.store.transaction(async (tx) => {
    await lockNames(parts.store, tx, authority)
    const keys = await keysOf(tx, domain.accountId, authority)
    if (domain.useAutomaticSenderSecurity) throw new BadRequest(MANAGED)
    const unmanaged = keys.filter((candidate) => candidate.managed === 0)
    const key = unmanaged.find((candidate) => candidate.active === 1) ?? unmanaged[0]
    if (!key) throw new NotFound(KEY_NOT_FOUND)
    if (shownSelector(key) === selector) return
    const isOwnFormer = key.selector === selector
    if (!isOwnFormer && isTaken(keys, selector)) throw new BadRequest(DUPLICATE_KEY)
    const change =
      key.active === 1
        ? { next_selector: isOwnFormer ? null : selector }
        : { selector, next_selector: null, check_json: null }
    await tx.updateTable('dkim_keys').set(change).where('id', '=', key.id).execute()
  })
  parts.signingKeys.changed(authority)
}

/**
 * Makes a domain its own authority (`self`), or gives it the authority of its nearest registered parent. Resolves
 * to whether anything changed. The former authority signs until the new one has an active key.
 */
export async function changeAuthority(parts: KeyParts, domain: Domain, self: boolean): Promise<boolean> {
  const authority = self ? domain.name : await parentAuthority(parts.store.db, domain.accountId, domain.name)
  if (authority === null || authority === domain.dkimHost) return false
  const known = await keysOf(parts.store.db, domain.accountId, authority)
  const fresh =
    self && !known.some((key) => key.managed === 0)
      ? await newDkimKeyRow(
          parts.sealer,
          {
            accountId: domain.accountId,
            authority,
            selector: freeSelector(known),
            algorithm: 'rsa',
            bits: 2048,
            active: false,
            activates: true,
          },
          parts.clock.now(),
        )
      : null
  const changed = await parts.store.transaction(async (tx) => {
    await lockNames(parts.store, tx, domain.name)
    const row = await tx.selectFrom('domains').selectAll().where('id', '=', domain.id).executeTakeFirst()
    if (!row) throw new NotFound('Domain not found')
    const current = domainOfRow(row, parts.clock.now())
    // The parent may have been deleted meanwhile, or may have changed its own authority.
    if (!self && (await parentAuthority(tx, domain.accountId, domain.name)) !== authority) return false
    const keys = await keysOf(tx, domain.accountId, authority)
    if (fresh && !keys.some((key) => key.managed === 0))
      await tx.insertInto('dkim_keys').values(fresh).execute()
    const signs = keys.some((key) => key.active === 1) || authority === current.dkimAuthority
    await tx
      .updateTable('domains')
      .set({
        dkim_authority: authority,
        signing_authority: signs ? null : current.dkimAuthority,
        dkim_unverified: 1,
      })
      .where('id', '=', domain.id)
      .execute()
    return true
  })
  parts.domains.changed(domain)
  parts.signingKeys.changed(authority)
  return changed
}

/** The authority of the nearest registered parent of `name` in the account; null: no parent is registered. */
export async function parentAuthority(db: Db, accountId: string, name: string) {
  const ancestors = ancestorsOf(name)
  if (ancestors.length === 0) return null
  const parents = await db
    .selectFrom('domains')
    .select(['name', 'dkim_authority'])
    .where('account_id', '=', accountId)
    .where('name', 'in', ancestors)
    .execute()
  const nearest = parents
    .filter((parent) => isBelow(name, parent.name))
    .sort((a, b) => b.name.length - a.name.length)[0]
  return nearest?.dkim_authority ?? null
}

/** `k1`, or the first free `kN` of the authority. */
export function freeSelector(keys: readonly DkimKeyRow[]): string {
  for (let number = 1; ; number++) {
    const selector = `k${number}`
    if (!isTaken(keys, selector)) return selector
  }
}
