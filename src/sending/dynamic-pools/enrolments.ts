/**
 * Domains in dynamic pools: how they enter, move and leave (dynamic-pools.md section 5). The band is written in two places in
 * one transaction: `dynamic_pool_domains`, and as the id of the pool in the row of the domain, where sending finds it.
 */
import { BadRequest } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import type { DynamicPoolsConfig } from '../../platform/config/sending.ts'
import type { DynamicPoolDomainRow } from '../../platform/store/schema.ts'
import type { Store, Tx } from '../../platform/store/store.ts'
import type { Figures } from '../../watching/metrics/figures.ts'
import type { Domain } from '../domains/domain.ts'
import { type AddressBook, SHARED } from '../ips/address-book.ts'
import { type DomainAddresses, presentDomain, setDomainAddresses } from '../ips/domains/domain-settings.ts'
import type { KnownAddresses } from '../ips/known-addresses.ts'
import { addressInNoPool, checkLinkable, leastUsedShared } from '../ips/rules.ts'
import { type Band, type DomainFigures, judge, moved, nextCheckAt, ratePpm, type Verdict } from './bands.ts'
import { figuresOf } from './domain-figures.ts'
import { type FiguresOfRow, NO_BAND, recordChange, SYSTEM } from './history.ts'
import { alreadyEnrolled, notEnrolled, ownerOf, poolsOf } from './pool-rules.ts'

interface EnrolmentParts extends Pick<Core, 'store' | 'clock' | 'domains' | 'accounts'> {
  known: KnownAddresses
  figures: Figures
  config: DynamicPoolsConfig
  /** Addresses are used by a domain now; may start their warm-up. */
  assigned(tx: Tx, accountId: string, ips: readonly string[]): Promise<void>
}

export interface Check {
  figures: DomainFigures
  verdict: Verdict
}

/** What a domain sends from when it has left; exactly one is given. */
interface Replacement {
  ips: readonly string[]
  poolId: string | undefined
}

export type Enrolments = ReturnType<typeof createEnrolments>

export function createEnrolments(parts: EnrolmentParts) {
  const { store, clock, known, domains, accounts, config } = parts
  const now = () => Math.floor(clock.now())
  const source = { ...parts, windowMs: config.windowMs }

  /** The result of a check now. Changes nothing. */
  async function check(domain: Pick<Domain, 'accountId' | 'name'>): Promise<Check> {
    const figures = await figuresOf(source, domain)
    return { figures, verdict: judge(figures, config) }
  }

  /** One of several, in a transaction of `KnownAddresses.change`. False: it is gone or enrolled. @throws as `enrol` */
  async function enrolIn(
    tx: Tx,
    { id, name, accountId }: Domain,
    { figures, verdict }: Check,
    initiatedBy: string,
  ): Promise<boolean> {
    const { band } = verdict
    const { accountName, ownerId } = await namesOf(accounts, accountId)
    const poolId = poolsOf(known.book(), ownerId).get(band)?.id as string
    const updated = await tx
      .updateTable('domains')
      .set({ dynamic_pool_id: poolId })
      .where('id', '=', id)
      .where('dynamic_pool_id', 'is', null)
      .executeTakeFirst()
    if (Number(updated.numUpdatedRows) === 0) return false
    await setDomainAddresses(tx, { id, accountId }, { ips: null, poolId: null })
    const at = now()
    const row: DynamicPoolDomainRow = {
      ...{ domain_id: id, account_id: accountId, owner_id: ownerId, name, band, registered_at: at },
      ...{ is_pinned: 0, clean_checks: band === 'dynamic_poor' ? 0 : 1 },
      next_check_at: nextCheckAt(id, at, config.intervalMs),
      ...columnsOf(figures),
    }
    await tx.insertInto('dynamic_pool_domains').values(row).execute()
    await recordChange(
      tx,
      {
        ...{ domainId: id, domainName: name, accountId, accountName, ownerId },
        ...{ from: NO_BAND, to: band, reason: 'enrolled', figures: columnsOf(figures), initiatedBy },
      },
      at,
    )
    return true
  }

  /** The row of an enrolled domain is changed by then. */
  async function move(
    tx: Tx,
    row: DynamicPoolDomainRow,
    to: Band,
    about: { reason: string; figures: FiguresOfRow; initiatedBy: string },
  ): Promise<void> {
    const { domain_id: domainId, owner_id: ownerId, account_id: accountId } = row
    await setBand(tx, row, to)
    const { accountName } = await namesOf(accounts, accountId)
    const change = { domainId, domainName: row.name, accountId, accountName, ownerId, ...about }
    await recordChange(tx, { ...change, from: row.band as Band, to }, now())
  }

  return {
    check,
    enrolIn,
    /** @throws BadRequest when the pools are not configured or the domain is enrolled */
    async enrol(domain: Domain, initiatedBy: string): Promise<void> {
      poolsOf(known.book(), await ownerOf(accounts, domain.accountId))
      const result = await check(domain)
      await known.change(async (tx) => {
        const present = await presentDomain(tx, domain)
        if (!(await enrolIn(tx, present, result, initiatedBy))) throw alreadyEnrolled()
      })
      domains.changed(domain)
    },
    /** @throws BadRequest when it is not enrolled, and for what it cannot have */
    async leave(domain: Domain, replacement: Replacement, initiatedBy: string): Promise<void> {
      if (replacement.ips.length > 0 === (replacement.poolId !== undefined))
        throw new BadRequest('exactly one of replacement_ip and replacement_pool_id must be provided')
      await known.change(async (tx) => {
        const row = await deleteEnrolled(tx, domain.id)
        const present = await presentDomain(tx, domain)
        const settings = await replacementFor(tx, known.book(), present.accountId, replacement)
        await tx.updateTable('domains').set({ dynamic_pool_id: null }).where('id', '=', present.id).execute()
        await setDomainAddresses(tx, present, settings)
        await parts.assigned(tx, present.accountId, settings.ips ?? [])
        const { accountName, ownerId } = await namesOf(accounts, present.accountId)
        await recordChange(
          tx,
          {
            ...{ domainId: present.id, domainName: present.name, accountId: present.accountId },
            ...{ accountName, ownerId, from: row.band as Band, to: NO_BAND, reason: 'removed' },
            ...{ figures: row, initiatedBy },
          },
          now(),
        )
      })
      domains.changed(domain)
    },
    /** Checks leave it in the band from now on. @throws BadRequest when it is not enrolled */
    async pin(domain: Domain, band: Band, initiatedBy: string): Promise<void> {
      await store.transaction(async (tx) => {
        const row = await pinTo(tx, domain.id, band)
        if (row.band !== band)
          await move(tx, row, band, { reason: 'override set', figures: row, initiatedBy })
      })
      domains.changed(domain)
    },
    /** It is due for a check at once. Resolves whether it was pinned. */
    unpin: ({ id }: Domain) => endPin(store, id, now()),
    /** Checks an enrolled domain and moves it. Nothing happens if it was checked, pinned or removed meanwhile. */
    async runCheck(row: DynamicPoolDomainRow): Promise<void> {
      const { figures, verdict } = await check({ accountId: row.account_id, name: row.name })
      const present = { band: row.band as Band, cleanChecks: Number(row.clean_checks) }
      const { band, cleanChecks } = moved(present, verdict.band, config)
      await store.transaction(async (tx) => {
        const columns = {
          ...{ band, clean_checks: cleanChecks, ...columnsOf(figures) },
          next_check_at: nextCheckAt(row.domain_id, now(), config.intervalMs),
        }
        if (!(await writeCheck(tx, row, columns)) || band === row.band) return
        await move(tx, row, band, {
          ...{ reason: verdict.reason, figures: columnsOf(figures), initiatedBy: SYSTEM },
        })
      })
      if (band !== row.band) domains.changed({ id: row.domain_id, name: row.name })
    },
  }
}

const namesOf = async (accounts: AccountDirectory, accountId: string) => ({
  accountName: (await accounts.byId(accountId))?.name ?? '',
  ownerId: await ownerOf(accounts, accountId),
})

const columnsOf = ({ processed, bounced, delivered, complained }: DomainFigures) => ({
  processed,
  bounce_ppm: ratePpm(bounced, processed),
  complaint_ppm: ratePpm(complained, delivered),
})

/** Pins an enrolled domain to `band`; resolves its row as it was before. @throws BadRequest when it is not enrolled */
async function pinTo(tx: Tx, domainId: string, band: Band): Promise<DynamicPoolDomainRow> {
  const row = await tx
    .updateTable('dynamic_pool_domains')
    .set({ is_pinned: 1, clean_checks: 0 })
    .where('domain_id', '=', domainId)
    .returningAll()
    .executeTakeFirst()
  if (row === undefined) throw notEnrolled()
  if (row.band !== band)
    await tx.updateTable('dynamic_pool_domains').set({ band }).where('domain_id', '=', domainId).execute()
  return row
}

/** Resolves whether the domain was pinned; then it is due for a check. */
async function endPin(store: Store, domainId: string, now: number): Promise<boolean> {
  const updated = await store.db
    .updateTable('dynamic_pool_domains')
    .set({ is_pinned: 0, clean_checks: 0, next_check_at: now })
    .where('domain_id', '=', domainId)
    .where('is_pinned', '=', 1)
    .executeTakeFirst()
  return Number(updated.numUpdatedRows) > 0
}

/** @throws BadRequest when the domain is not enrolled */
async function deleteEnrolled(tx: Tx, domainId: string): Promise<DynamicPoolDomainRow> {
  const row = await tx
    .deleteFrom('dynamic_pool_domains')
    .where('domain_id', '=', domainId)
    .returningAll()
    .executeTakeFirst()
  if (row === undefined) throw notEnrolled()
  return row
}

/** Lets an enrolled domain send from the pool of band `to`. */
async function setBand(tx: Tx, row: DynamicPoolDomainRow, to: Band): Promise<void> {
  await tx
    .updateTable('domains')
    .set((eb) => ({
      dynamic_pool_id: eb
        .selectFrom('dynamic_pools')
        .select('dynamic_pools.id')
        .where('dynamic_pools.account_id', '=', row.owner_id)
        .where('band', '=', to),
    }))
    .where('id', '=', row.domain_id)
    .where('dynamic_pool_id', 'is not', null)
    .execute()
}

/** False: the domain was checked, pinned or removed since `row` was read. */
async function writeCheck(tx: Tx, row: DynamicPoolDomainRow, columns: Partial<DynamicPoolDomainRow>) {
  const updated = await tx
    .updateTable('dynamic_pool_domains')
    .set(columns)
    .where('domain_id', '=', row.domain_id)
    .where('is_pinned', '=', 0)
    .where('band', '=', row.band)
    .where('next_check_at', '=', row.next_check_at)
    .executeTakeFirst()
  return Number(updated.numUpdatedRows) > 0
}

/** Rule 4. @throws NotFound, BadRequest */
async function replacementFor(
  tx: Tx,
  book: AddressBook,
  accountId: string,
  { ips, poolId }: Replacement,
): Promise<DomainAddresses> {
  if (poolId !== undefined) {
    await checkLinkable(tx, book, accountId, poolId)
    return { ips: null, poolId }
  }
  if (!ips.includes(SHARED)) {
    const own = ips.map((ip) => addressInNoPool(book, accountId, ip).ip)
    return { ips: [...new Set(own)], poolId: null }
  }
  if (ips.length > 1) throw new BadRequest('several replacement IPs must all be dedicated')
  return { ips: [await leastUsedShared(tx, book, accountId)], poolId: null }
}
