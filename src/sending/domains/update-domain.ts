/** Changes a domain's settings (domains.md rules 19-21, 26). */

import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { ifStale } from '../../platform/store/commits.ts'
import { enter } from '../../platform/store/pods/entries.ts'
import type { DomainRow } from '../../platform/store/schema.ts'
import type { Tx } from '../../platform/store/store.ts'
import { type CreateParts, checkArchive, NO_SENDER_SECURITY } from './create-domain.ts'
import { type Domain, domainOfRow } from './domain.ts'
import { columnsOf, type DomainChanges } from './fields.ts'
import { freeSelector, keysOf } from './keys/dkim-keys.ts'
import { newSenderSecurity, switchOff, switchOn } from './keys/sender-security.ts'
import { newDkimKeyRow } from './keys/signing-keys.ts'
import { checkReturnPathHost, checkTrackingHost, TAKEN } from './names/claims.ts'
import { lockNames } from './names/name-lock.ts'
import { hostEntries, leaveHosts } from './names/pod-entries.ts'

export interface UpdateParts extends CreateParts {
  /** How long replaced keys keep signing while the new records are awaited. */
  graceMs: number
}

/**
 * Changes the given settings and resolves to the changed domain.
 * @throws NotFound when it was deleted meanwhile; BadRequest for a host of another account or of the service, an archive
 *   that may not be called, or
 *   automatic sender security on a server without a DKIM zone
 */
export async function updateDomain(
  parts: UpdateParts,
  domain: Domain,
  changes: DomainChanges & { smtp_password?: string | undefined },
): Promise<Domain> {
  const { mailfrom_host: mailfromHost, web_prefix: webPrefix } = changes
  const { use_automatic_sender_security: secured } = changes
  const { store, clock } = parts
  const { accountId, name } = domain
  if (mailfromHost !== undefined && mailfromHost !== name)
    await checkReturnPathHost(store.db, accountId, mailfromHost)
  if (webPrefix !== undefined && webPrefix !== domain.webPrefix)
    await checkTrackingHost(store.db, parts.ownHosts, { accountId, webPrefix, name })
  await checkArchive(parts.httpClient, changes)
  const isSwitched = secured !== undefined && secured !== domain.useAutomaticSenderSecurity
  if (isSwitched) await switchSenderSecurity(parts, domain, secured)
  const { use_automatic_sender_security: _, ...columns } = columnsOf(changes)
  const { smtp_password: password } = changes
  const login = password === undefined ? null : await parts.postmasterLogin(domain, password)
  const change = async (tx: Tx) => {
    const row = await tx.selectFrom('domains').selectAll().where('id', '=', domain.id).executeTakeFirst()
    if (!row) throw new NotFound('Domain not found')
    const change: Partial<DomainRow> = {
      ...columns,
      // Not known to work until the new host has been looked up.
      ...(webPrefix !== undefined && webPrefix !== row.web_prefix && { tracking_valid: 0 as const }),
      ...(mailfromHost !== undefined &&
        mailfromHost !== row.mailfrom_host && { return_path_valid: 0 as const }),
    }
    if (Object.keys(change).length > 0)
      await tx.updateTable('domains').set(change).where('id', '=', domain.id).execute()
    const changed = { ...row, ...change }
    if (webPrefix !== undefined || mailfromHost !== undefined) {
      await leaveHosts(store, tx, hostEntries(row))
      await enter(store, tx, hostEntries(changed))
    }
    await login?.(tx)
    return changed
  }
  const taken = ifStale((cause) => new BadRequest(TAKEN, { cause }))
  const after = await store.transaction(change).catch(taken)
  parts.domains.changed(domain)
  return domainOfRow(after, clock.now())
}

/** The expected records change, so the domain is unverified until they are found (rule 19). */
async function switchSenderSecurity(parts: UpdateParts, domain: Domain, on: boolean): Promise<void> {
  const { store, sealer, clock } = parts
  if (on && parts.targets.dkimZone === null) throw new BadRequest(NO_SENDER_SECURITY)
  const now = Math.floor(clock.now())
  const graceUntil = now + parts.graceMs
  const known = await keysOf(store.db, domain.accountId, domain.name)
  const fresh = on
    ? await newSenderSecurity(sealer, { id: domain.id, account_id: domain.accountId, name: domain.name }, now)
    : null
  const spare = on
    ? null
    : await newDkimKeyRow(
        sealer,
        {
          accountId: domain.accountId,
          authority: domain.name,
          selector: freeSelector(known),
          algorithm: 'rsa',
          bits: 2048,
          active: false,
          activates: true,
        },
        now,
      )
  await store.transaction(async (tx) => {
    await lockNames(store, tx, domain.name)
    const row = await tx.selectFrom('domains').selectAll().where('id', '=', domain.id).executeTakeFirst()
    if (!row) throw new NotFound('Domain not found')
    if (fresh) await switchOn(tx, domain, fresh, graceUntil)
    if (spare) await switchOff(tx, domain, spare, graceUntil)
    const signs = row.signing_authority ?? row.dkim_authority
    await tx
      .updateTable('domains')
      .set({
        use_automatic_sender_security: on ? 1 : 0,
        dkim_authority: domain.name,
        signing_authority: signs === domain.name ? null : signs,
        verified: 0,
        state: row.state === 'active' && row.type !== 'sandbox' ? 'unverified' : row.state,
      })
      .where('id', '=', domain.id)
      .execute()
  })
  parts.domains.changed(domain)
  parts.signingKeys.changed(domain.name)
}
