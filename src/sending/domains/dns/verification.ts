/**
 * Verifies a domain: looks up all its records, stores the results and derives the state from them.
 *
 * Keys belong to the authority, which may be another domain of the account: their checks are stored with the keys,
 * those of the other records with the domain.
 */
import type { Core } from '../../../core.ts'
import type { DkimKeyRow, Flag } from '../../../platform/store/schema.ts'
import type { Store, Tx } from '../../../platform/store/store.ts'
import { checkDkim } from '../../../protocols/dns/record-data.ts'
import { type Domain, domainOfRow, enabledState } from '../domain.ts'
import { senderSecurityVerified } from '../keys/sender-security.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import { lockNames } from '../names/name-lock.ts'
import {
  checkOf,
  type DnsTargets,
  dkimName,
  keyCheckOf,
  type StoredCheck,
  wantedKeyRecord,
  wantedRecords,
} from './dns-records.ts'
import { type LookupParts, lookUp, lookUpDmarc } from './lookups.ts'
import {
  decidingVerdicts,
  isVerifiedAfter,
  type KeyVerdict,
  nextCheckAt,
  type Verdict,
  verdictOf,
} from './state.ts'

export interface VerificationParts extends LookupParts, Pick<Core, 'store' | 'domains'> {
  signingKeys: SigningKeys
  targets: DnsTargets
}

/** A key with the check of its record; `former`: the check under the selector that still signs, during a rename. */
interface KeyLookup {
  key: DkimKeyRow
  check: StoredCheck
  former: StoredCheck | null
}

/** What is stored about a domain's DNS: the checks of its records, and its keys with theirs. */
export interface DnsState {
  checks: readonly StoredCheck[]
  keys: readonly DkimKeyRow[]
  /** The domain's label in the DKIM zone, if it ever used automatic sender security. */
  sid: string | null
}

/** The keys whose records a domain shows: those of its authority, either the managed or the unmanaged ones. */
export async function readDnsState(store: Store, domain: Domain): Promise<DnsState> {
  const { db } = store
  const [dns, all, security] = await Promise.all([
    db.selectFrom('domain_dns').select('checks_json').where('domain_id', '=', domain.id).executeTakeFirst(),
    db
      .selectFrom('dkim_keys')
      .selectAll()
      .where('authority', '=', domain.dkimHost)
      .where('account_id', '=', domain.accountId)
      .orderBy('id')
      .execute(),
    db
      .selectFrom('sender_security')
      .select('sid')
      .where('domain_name', '=', domain.dkimHost)
      .executeTakeFirst(),
  ])
  const isManaged =
    domain.dkimHost === domain.name
      ? domain.useAutomaticSenderSecurity
      : all.some((key) => key.managed === 1 && key.active === 1)
  const keys = all.filter((key) => (key.managed === 1) === isManaged)
  const checks = dns ? (JSON.parse(dns.checks_json) as StoredCheck[]) : []
  return { checks, keys, sid: security?.sid ?? null }
}

/**
 * Looks up all records without the cache and stores the results. Sandbox domains are in no public DNS, so nothing
 * is looked up for them. Resolves to the updated domain; null if it was deleted meanwhile.
 */
export async function verifyDomain(
  parts: VerificationParts,
  domain: Domain,
  asked: 'by-caller' | 'in-background',
): Promise<Domain | null> {
  if (domain.type === 'sandbox') return domain
  const before = await readDnsState(parts.store, domain)
  const dmarcUse = {
    fromDomain: domain.name,
    dkimDomain: domain.dkimHost,
    returnPathDomain: domain.mailfromHost,
  }
  const signs = before.keys.some((key) => key.active === 1)
  const dmarcBefore = before.checks.find((check) => check.purpose === 'dmarc')
  const [keys, checks, dmarc] = await Promise.all([
    Promise.all(
      before.keys.map(async (key) => {
        const lookup = await lookUpKey(parts, key, before.sid)
        return key.managed === 1 && (key.active === 1 || !signs) ? withPublishedKey(parts, lookup) : lookup
      }),
    ),
    Promise.all(
      wantedRecords(domain, parts.targets).map((wanted) =>
        lookUp(parts, wanted, checkOf(wanted, before.checks)),
      ),
    ),
    lookUpDmarc(parts, dmarcUse, dmarcBefore),
  ])
  const after = await parts.store.transaction(async (tx) => {
    await lockNames(parts.store, tx, domain.name)
    return storeLookups(tx, parts, domain.id, { keys, checks: [...checks, dmarc] }, asked)
  })
  parts.domains.changed(domain)
  parts.signingKeys.changed(domain.dkimHost)
  return after
}

/** Looks up the record of one key, and during a rename also the one under the selector that still signs. */
export async function lookUpKey(
  parts: LookupParts & { targets: DnsTargets },
  key: DkimKeyRow,
  sid: string | null,
): Promise<KeyLookup> {
  const wanted = wantedKeyRecord(key, sid, parts.targets)
  const former = { ...wanted, name: dkimName(key.selector, key.authority) }
  const [check, old] = await Promise.all([
    lookUp(parts, wanted, keyCheckOf(key, wanted)),
    key.next_selector === null ? null : lookUp(parts, former, undefined),
  ])
  return { key, check, former: old }
}

/** A valid CNAME is not enough: the service itself must publish the key at its target before it signs. */
async function withPublishedKey(parts: LookupParts, lookup: KeyLookup): Promise<KeyLookup> {
  const { check, key } = lookup
  if (!check.valid || !check.answered) return lookup
  const published = checkDkim(
    await parts.resolver.query(check.name, 'TXT', { fresh: true }),
    key.public_record,
  )
  if (published.valid) return lookup
  const sentence = `${check.sentence} But the key behind it, which this service publishes, is not right there: ${published.sentence}`
  return { ...lookup, check: { ...check, valid: false, answered: published.answered, sentence } }
}

/**
 * Stores the check of a key. A new selector takes over once its record is valid; a key that waited for its record
 * begins to sign. Does nothing for a key that was removed or renamed meanwhile.
 */
export async function storeKeyLookup(tx: Tx, { key, check }: KeyLookup): Promise<DkimKeyRow | null> {
  const row = await tx.selectFrom('dkim_keys').selectAll().where('id', '=', key.id).executeTakeFirst()
  if (!row || row.next_selector !== key.next_selector || row.public_record !== key.public_record)
    return row ?? null
  const isValid = check.valid && check.answered
  const change = {
    check_json: JSON.stringify(check),
    ...(isValid && row.next_selector !== null && { selector: row.next_selector, next_selector: null }),
    ...(isValid && row.activates === 1 && row.managed === 0 && { active: 1 as Flag, activates: 0 as Flag }),
  }
  await tx.updateTable('dkim_keys').set(change).where('id', '=', row.id).execute()
  return { ...row, ...change }
}

async function storeLookups(
  tx: Tx,
  parts: VerificationParts,
  domainId: string,
  lookups: { keys: readonly KeyLookup[]; checks: readonly StoredCheck[] },
  asked: 'by-caller' | 'in-background',
): Promise<Domain | null> {
  const now = Math.floor(parts.clock.now())
  const row = await tx.selectFrom('domains').selectAll().where('id', '=', domainId).executeTakeFirst()
  if (!row) return null
  const domain = domainOfRow(row, now)
  const keyVerdicts: KeyVerdict[] = []
  for (const lookup of lookups.keys) {
    const key = await storeKeyLookup(tx, lookup)
    if (key && key.authority === domain.dkimHost)
      keyVerdicts.push({ active: key.active === 1, verdict: keyVerdict(lookup) })
  }
  const verified = isVerifiedAfter(
    row.verified === 1,
    stateVerdicts(domain, lookups.checks, keyVerdicts, parts),
    asked,
  )
  if (verified && domain.useAutomaticSenderSecurity) await senderSecurityVerified(tx, domain, now)
  if (verified && !domain.useAutomaticSenderSecurity) await retireManagedKeys(tx, domain.name, keyVerdicts)
  const tracking = checkOfPurpose(domain, lookups.checks, parts, 'tracking')
  const returnPath = checkOfPurpose(domain, lookups.checks, parts, 'return-path-spf')
  const hasSigningKey = keyVerdicts.some((key) => key.active)
  const change = {
    verified: flag(verified),
    state:
      domain.state === 'disabled' ? row.state : enabledState({ type: row.type, verified: flag(verified) }),
    disabled_json: domain.state === 'disabled' ? row.disabled_json : null,
    tracking_valid: flag(tracking?.valid ?? row.tracking_valid === 1),
    return_path_valid: flag(returnPath?.valid ?? row.return_path_valid === 1),
    dkim_unverified: 0 as Flag,
    signing_authority: hasSigningKey ? null : row.signing_authority,
  }
  await tx.updateTable('domains').set(change).where('id', '=', domainId).execute()
  await storeChecks(tx, domainId, lookups.checks, row.verified === 1, verified, now)
  return domainOfRow({ ...row, ...change }, now)
}

/** Keys of automatic sender security keep signing after it was switched off, until one of the owner's keys does. */
async function retireManagedKeys(tx: Tx, authority: string, keys: readonly KeyVerdict[]) {
  if (!keys.some((key) => key.active)) return
  await tx
    .updateTable('dkim_keys')
    .set({ active: 0 })
    .where('authority', '=', authority)
    .where('managed', '=', 1)
    .execute()
}

/** The verdicts that decide the state: SPF and the keys. The settings may have changed since the lookup. */
function stateVerdicts(
  domain: Domain,
  checks: readonly StoredCheck[],
  keys: readonly KeyVerdict[],
  parts: VerificationParts,
): Verdict[] {
  const spf = checkOfPurpose(domain, checks, parts, 'spf')
  const dkim = domain.useAutomaticSenderSecurity ? keys.map((key) => key.verdict) : decidingVerdicts(keys)
  return [spf ? verdictOf(spf) : 'unanswered', ...(dkim.length > 0 ? dkim : (['wrong'] as const))]
}

function checkOfPurpose(
  domain: Domain,
  checks: readonly StoredCheck[],
  { targets }: VerificationParts,
  purpose: 'spf' | 'tracking' | 'return-path-spf',
): StoredCheck | undefined {
  const wanted = wantedRecords(domain, targets).find((record) => record.purpose === purpose)
  return wanted && checkOf(wanted, checks)
}

/** During a rename either name is enough: the old one still signs. */
function keyVerdict({ check, former }: KeyLookup): Verdict {
  const verdict = verdictOf(check)
  return verdict === 'valid' || former === null ? verdict : verdictOf(former)
}

async function storeChecks(
  tx: Tx,
  domainId: string,
  checks: readonly StoredCheck[],
  wasVerified: boolean,
  verified: boolean,
  now: number,
): Promise<void> {
  const known = await tx
    .selectFrom('domain_dns')
    .select('state_since')
    .where('domain_id', '=', domainId)
    .executeTakeFirst()
  const since = known && wasVerified === verified ? known.state_since : now
  const row = {
    checks_json: JSON.stringify(checks),
    state_since: since,
    next_check_at: nextCheckAt(verified, since, now),
  }
  await tx
    .insertInto('domain_dns')
    .values({ domain_id: domainId, ...row })
    .onConflict((conflict) => conflict.column('domain_id').doUpdateSet(row))
    .execute()
}

const flag = (value: boolean): Flag => (value ? 1 : 0)
