/** Creates a domain together with its first DKIM key (domains.md rules 9, 14-18). */
import { randomHex } from '../../base/ids.ts'
import { BadRequest, Unavailable } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { invalidChoice } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { type HttpClient, storedUrlFault } from '../../platform/posts/http-client.ts'
import { countOf } from '../../platform/store/count.ts'
import { enter } from '../../platform/store/pods/entries.ts'
import type { DkimKeyRow, DomainRow } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import { type Db, StaleWrite, type Store, type Tx } from '../../platform/store/store.ts'
import type { DnsTargets } from './dns/dns-records.ts'
import type { OwnHosts } from './dns/own-hosts.ts'
import { nextCheckAt } from './dns/state.ts'
import { type Domain, domainOfRow, newDomainRow } from './domain.ts'
import { columnsOf, type DomainChanges } from './fields.ts'
import { freeSelector, isUniqueViolation, keysOf, parentAuthority } from './keys/dkim-keys.ts'
import { newSenderSecurity, type SenderSecurity } from './keys/sender-security.ts'
import { newDkimKeyRow, type SigningKeys } from './keys/signing-keys.ts'
import { type Claimant, checkBelow, checkTrackingHost, isTakenBelow, TAKEN } from './names/claims.ts'
import { lockNames } from './names/name-lock.ts'
import { domainEntries } from './names/pod-entries.ts'
import { type DkimChoice, dkimChoice, type NewDomain } from './settings.ts'

/** What other areas know about addresses to send from. */
export interface SendingAddresses {
  isAssigned(accountId: string, ip: string): Promise<boolean>
  /** Whether the account has this pool, with at least one address. */
  hasPool(accountId: string, poolId: string): Promise<boolean>
}

/**
 * Hashes the password of the login `postmaster@<name>`, and resolves to what creates or changes the login; null: it has no
 * password yet.
 */
export type SystemLoginWrite = (
  domain: Pick<Domain, 'id' | 'accountId' | 'name'>,
  password: string | null,
) => Promise<(tx: Tx) => Promise<void>>

export interface CreateParts extends Pick<Core, 'store' | 'sealer' | 'clock' | 'domains'> {
  signingKeys: SigningKeys
  targets: DnsTargets
  ownHosts: OwnHosts
  addresses: SendingAddresses
  httpClient: Pick<HttpClient, 'fault'>
  /** Domains per account; 0: no limit. */
  maxDomains: number
  postmasterLogin: SystemLoginWrite
}

export const NO_SENDER_SECURITY = 'Automatic Sender Security is not configured on this server'

/** @throws BadRequest with the texts of domains.md */
export async function createDomain(
  parts: CreateParts,
  claimant: Claimant,
  given: NewDomain,
): Promise<Domain> {
  const wanted = { ...given, dkim: dkimChoice(given) }
  for (let attempt = 1; ; attempt++) {
    const made = await tryCreate(parts, claimant, wanted)
    if (made !== 'authority changed') return made
    if (attempt === ATTEMPTS_MAX) throw new Unavailable()
  }
}

type Wanted = NewDomain & { dkim: DkimChoice }

/** The authority, a parent domain, may be deleted while the key is generated; then it is chosen again. */
const ATTEMPTS_MAX = 3

async function tryCreate(
  parts: CreateParts,
  claimant: Claimant,
  wanted: Wanted,
): Promise<Domain | 'authority changed'> {
  const { store, clock } = parts
  const { accountId } = claimant
  const now = Math.floor(clock.now())
  await checkAddresses(parts.addresses, accountId, wanted)
  await checkArchive(parts.httpClient, wanted)
  await checkName(store.db, claimant, wanted.name)
  const { name } = wanted
  const row = {
    ...newDomainRow({
      id: randomHex(12),
      account_id: accountId,
      name,
      type: 'custom',
      state: 'unverified',
      created_at: now,
    }),
    ...columnsOf(wanted),
  }
  await checkTrackingHost(store.db, parts.ownHosts, { accountId, webPrefix: row.web_prefix, name })
  row.dkim_authority = await chooseAuthority(store.db, accountId, wanted)
  const keys = await firstKeys(parts, row, wanted)
  const login = await parts.postmasterLogin({ id: row.id, accountId, name }, wanted.smtp_password ?? null)
  const isMade = await store
    .transaction(async (tx) => {
      await lockNames(store, tx, wanted.name)
      await checkCount(tx, accountId, parts.maxDomains)
      await checkName(tx, claimant, wanted.name)
      if ((await chooseAuthority(tx, accountId, wanted)) !== row.dkim_authority) return false
      await tx.insertInto('domains').values(row).execute()
      await enter(store, tx, domainEntries(row))
      const ips = [...new Set(wanted.ips ?? [])]
      if (ips.length > 0)
        await tx
          .insertInto('domain_ips')
          .values(ips.map((ip) => ({ domain_id: row.id, ip, account_id: accountId })))
          .execute()
      if (keys.rows.length > 0) await tx.insertInto('dkim_keys').values(keys.rows).execute()
      if (keys.security) await tx.insertInto('sender_security').values(keys.security.row).execute()
      await tx
        .insertInto('domain_dns')
        .values({
          domain_id: row.id,
          checks_json: '[]',
          state_since: now,
          next_check_at: nextCheckAt(false, now, now),
        })
        .execute()
      await login(tx)
      return true
    })
    .catch((error: unknown) => {
      // A stale write: another pod has the name, or one of its hosts.
      const isTaken = isUniqueViolation(error) || error instanceof StaleWrite
      throw isTaken ? new BadRequest(TAKEN, { cause: error }) : error
    })
  if (!isMade) return 'authority changed'
  const domain = domainOfRow(row, now)
  parts.domains.changed(domain)
  parts.signingKeys.changed(domain.dkimHost)
  return domain
}

/** @throws BadRequest for an archive that may not be called, as for the URL of a webhook */
export async function checkArchive(
  httpClient: Pick<HttpClient, 'fault'>,
  { archive_to: archiveTo }: Pick<DomainChanges, 'archive_to'>,
): Promise<void> {
  if (archiveTo && (await storedUrlFault(httpClient, archiveTo)) !== null)
    throw invalidChoice('archive_to', archiveTo)
}

async function checkAddresses(addresses: SendingAddresses, accountId: string, wanted: Wanted): Promise<void> {
  for (const ip of wanted.ips ?? [])
    if (!(await addresses.isAssigned(accountId, ip)))
      throw new BadRequest(`IP ${ip} is not assigned to the account`)
  if (wanted.pool_id != null && !(await addresses.hasPool(accountId, wanted.pool_id)))
    throw new BadRequest('IP pool not found')
}

async function checkCount(tx: Tx, accountId: string, max: number): Promise<void> {
  if (max === 0) return
  const count = await countOf(tx.selectFrom('domains').where('account_id', '=', accountId))
  if (count >= max) throw new BadRequest(`The account has its maximum of ${max} domains`)
}

/**
 * A name is taken while a domain has it, even one that is being deleted, and while another account signs with it:
 * its keys would sign for both. Names below the verified domain of another account are that account's.
 */
async function checkName(db: Db, claimant: Claimant, name: string): Promise<void> {
  const domain = await db.selectFrom('domains').select('id').where('name', '=', name).executeTakeFirst()
  const leaving = await db
    .selectFrom('domain_deletions')
    .select('name')
    .where('name', '=', name)
    .executeTakeFirst()
  if (domain || leaving || (await isForeignAuthority(db, claimant.accountId, name)))
    throw new BadRequest(TAKEN)
  await checkBelow(db, claimant, name)
}

/** Whether `host` is a domain or the DKIM authority of another account. */
async function isForeignAuthority(db: Db, accountId: string, host: string): Promise<boolean> {
  const domain = await db
    .selectFrom('domains')
    .select('id')
    .where('account_id', '<>', accountId)
    .where((eb) =>
      eb.or([eb('name', '=', host), eb('dkim_authority', '=', host), eb('signing_authority', '=', host)]),
    )
    .limit(1)
    .executeTakeFirst()
  const key = await db
    .selectFrom('dkim_keys')
    .select('id')
    .where('account_id', '<>', accountId)
    .where('authority', '=', host)
    .limit(1)
    .executeTakeFirst()
  return domain !== undefined || key !== undefined
}

/** @throws BadRequest for a host that another account signs with */
async function chooseAuthority(db: Db, accountId: string, wanted: Wanted): Promise<string> {
  const { dkim, name } = wanted
  if (dkim.kind === 'self') return name
  if (wanted.use_automatic_sender_security)
    throw new BadRequest('use_automatic_sender_security needs the domain to be its own DKIM authority')
  if (dkim.kind === 'parent') return (await parentAuthority(db, accountId, name)) ?? name
  const isTaken =
    (await isForeignAuthority(db, accountId, dkim.host)) ||
    (await isTakenBelow(db, accountId, name, dkim.host))
  if (isTaken) {
    throw dkim.kind === 'root'
      ? invalidChoice('force_root_dkim_host', 'true')
      : invalidChoice('dkim_host_name', dkim.host)
  }
  return dkim.host
}

/** The first keys of a new domain: none if its authority already has some. */
async function firstKeys(
  parts: CreateParts,
  row: DomainRow,
  wanted: Wanted,
): Promise<{ rows: DkimKeyRow[]; security: SenderSecurity | null }> {
  if (wanted.use_automatic_sender_security) {
    if (parts.targets.dkimZone === null) throw new BadRequest(NO_SENDER_SECURITY)
    const security = await newSenderSecurity(parts.sealer, row, parts.clock.now())
    return { rows: security.keys, security }
  }
  const known = await keysOf(parts.store.db, row.account_id, row.dkim_authority)
  const isParents = wanted.dkim.kind === 'parent' && row.dkim_authority !== row.name
  if (isParents || known.some((key) => key.managed === 0)) return { rows: [], security: null }
  const { dkim_selector: selector = 'k1', dkim_key_size: bits } = wanted
  const isUsed = known.some((key) => key.selector === selector)
  const key = await newDkimKeyRow(
    parts.sealer,
    {
      accountId: row.account_id,
      authority: row.dkim_authority,
      selector: isUsed ? freeSelector(known) : selector,
      algorithm: 'rsa',
      bits,
      active: false,
      activates: true,
    },
    parts.clock.now(),
  )
  return { rows: [key], security: null }
}

/** Creates a sandbox domain: active at once, signed with its own key, which no DNS publishes. */
export async function createSandbox(
  parts: { store: Store; sealer: Sealer; clock: Clock },
  accountId: string,
  name: string,
): Promise<void> {
  const { store, sealer, clock } = parts
  const now = clock.now()
  const key = await newDkimKeyRow(
    sealer,
    { accountId, authority: name, selector: 'k1', algorithm: 'rsa', bits: 2048, active: true },
    now,
  )
  const domain = newDomainRow({
    id: randomHex(12),
    account_id: accountId,
    name,
    type: 'sandbox',
    state: 'active',
    created_at: Math.floor(now),
  })
  await store.transaction(async (tx) => {
    await tx.insertInto('domains').values(domain).execute()
    await enter(store, tx, domainEntries(domain))
    await tx.insertInto('dkim_keys').values(key).execute()
  })
}
