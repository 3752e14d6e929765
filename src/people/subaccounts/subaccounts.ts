/**
 * Subaccounts (accounts.md section 3): a parent account creates, disables, enables and closes them. What a change means
 * for mail and for everything that belongs to the account follows in the background (changes-job.ts).
 */
import type { Transaction } from 'kysely'
import { randomHex } from '../../base/ids.ts'
import { BadRequest, NotFound, parentsOnly, present } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import type { AccountRow, AuditRow, Schema } from '../../platform/store/schema.ts'
import {
  ACCOUNT_ID,
  type Account,
  accountOfRow,
  type Feature,
  isAccountName,
} from '../accounts/account-directory.ts'
import { type Actor, auditRow } from '../accounts/audit-log.ts'
import { findRow, insertRow, listRows, noteChange, type SubaccountQuery } from './store.ts'

/** Why it is disabled. */
interface Disablement {
  reason: string
  note: string
}

/** An account as its parent sees it. */
export interface Subaccount extends Account {
  /** Null: it is not disabled. */
  disabled: Disablement | null
  /** The pod that has it; null: there are none. */
  pod: string | null
}

/** All throw Forbidden for a caller whose account is a subaccount itself, and NotFound for an unknown id. */
export type Subaccounts = ReturnType<typeof createSubaccounts>

export interface SubaccountParts extends Pick<Core, 'store' | 'sealer' | 'clock' | 'accounts'> {
  /** A transaction that adds an account. */
  addAccount<T>(run: (tx: Transaction<Schema>) => Promise<T>): Promise<T>
  /** A change was noted. */
  wake(): void
}

export function createSubaccounts(parts: SubaccountParts) {
  const { store, sealer, clock, accounts, wake } = parts

  async function checkParent(callerId: string): Promise<void> {
    const account = await accounts.byId(callerId)
    if (account === null || account.parentId !== null) throw parentsOnly()
  }

  async function own(callerId: string, id: string): Promise<AccountRow> {
    await checkParent(callerId)
    return present(ACCOUNT_ID.test(id) ? await findRow(store, callerId, id) : undefined)
  }

  /** Writes the columns that `change` returns for the present row, and notes the change. A closed account has none. */
  async function update(
    callerId: string,
    id: string,
    change: (row: AccountRow) => Partial<AccountRow>,
    audited?: AuditRow,
  ): Promise<Subaccount> {
    await own(callerId, id)
    const now = Math.floor(clock.now())
    const after = await store.transaction(async (tx) => {
      let query = tx.selectFrom('accounts').selectAll().where('id', '=', id)
      // On SQLite the transaction is the only writer.
      if (store.kind === 'postgres') query = query.forUpdate()
      const row = await query.executeTakeFirstOrThrow()
      if (row.status === 'closed') throw new NotFound()
      const columns = { ...change(row), updated_at: now }
      await tx.updateTable('accounts').set(columns).where('id', '=', id).execute()
      await noteChange(tx, id, now)
      if (audited) await tx.insertInto('audit').values(audited).execute()
      return { ...row, ...columns }
    })
    accounts.changed(id)
    wake()
    return subaccountOfRow(after, store.pod)
  }

  return {
    async list(callerId: string, query: SubaccountQuery): Promise<{ items: Subaccount[]; total: number }> {
      await checkParent(callerId)
      const { rows, total } = await listRows(store, callerId, query)
      return { items: rows.map((row) => subaccountOfRow(row, store.pod)), total }
    },
    read: async (callerId: string, id: string): Promise<Subaccount> =>
      subaccountOfRow(await own(callerId, id), store.pod),
    /** @throws BadRequest for a name that is invalid or taken */
    async create(callerId: string, name: string): Promise<Subaccount> {
      await checkParent(callerId)
      if (!isAccountName(name)) throw new BadRequest('Bad request')
      const now = Math.floor(clock.now())
      const made = {
        id: randomHex(12),
        parent_id: callerId,
        name,
        signing_key_sealed: sealer.seal('webhook-signing-key', `key-${randomHex(16)}`),
        created_at: now,
        updated_at: now,
        status: 'open',
        disabled_json: null,
        features_json: '{}',
      }
      const row = await parts.addAccount((tx) => insertRow(store, tx, made))
      if (row === null) throw new BadRequest('Bad request')
      return subaccountOfRow(row, store.pod)
    },
    /** @throws BadRequest when it is disabled already */
    disable: (callerId: string, id: string, why: Disablement) =>
      update(callerId, id, ({ status }) => {
        if (status === 'disabled') throw new BadRequest('subaccount is already disabled')
        return { status: 'disabled', disabled_json: JSON.stringify(why) }
      }),
    /** @throws BadRequest when it is open already */
    enable: (callerId: string, id: string) =>
      update(callerId, id, ({ status }) => {
        if (status === 'open') throw new BadRequest('subaccount is already enabled')
        return { status: 'open', disabled_json: null }
      }),
    async setFeatures(
      callerId: string,
      id: string,
      features: Partial<Record<Feature, boolean>>,
    ): Promise<void> {
      await update(callerId, id, ({ features_json: known }) => ({
        features_json: JSON.stringify({ ...(JSON.parse(known) as object), ...features }),
      }))
    },
    /** Closes it for good; the row in the audit log is written with that. */
    async close(actor: Actor, id: string): Promise<void> {
      const change = { action: 'subaccount.delete', subject: id, detail: {} }
      const closed = () => ({ status: 'closed', disabled_json: null })
      await update(actor.caller.accountId, id, closed, auditRow(actor, change, clock.now()))
    },
  }
}

const subaccountOfRow = (row: AccountRow, pod: string | null): Subaccount => ({
  ...accountOfRow(row),
  pod,
  disabled: row.disabled_json === null ? null : (JSON.parse(row.disabled_json) as Disablement),
})
