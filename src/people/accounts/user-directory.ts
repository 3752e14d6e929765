/** Looks users up. users.ts changes them. */
import type { Selectable } from 'kysely'
import { NotFound } from '../../base/process/errors.ts'
import type { UserRole } from '../../platform/http/rights/rights.ts'
import { countOf } from '../../platform/store/count.ts'
import type { UserRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { parseMailbox } from '../../protocols/mime/address.ts'

export type User = Selectable<UserRow>

/** Has chosen a password, or signs in with the provider. */
export const isActive = ({ password_hash, auth_method }: User) =>
  password_hash !== null || auth_method === 'oidc'

export type UserDirectory = ReturnType<typeof createUserDirectory>

const EMAIL_LENGTH_MAX = 254 // RFC 5321 §4.5.3.1.3, without the angle brackets

/** Admins of one account that get a mail; it has one transaction for all. */
const ADMINS_MAX = 100

/**
 * Addresses of the admins of an account who can sign in, for a mail about it. A subaccount without any is run by its parent:
 * then by those of `parentId`.
 */
export async function adminMailboxes(
  store: Pick<Store, 'db'>,
  accountId: string,
  parentId: string | null,
): Promise<string[]> {
  const rows = await store.db
    .selectFrom('users')
    .select('email')
    .where('account_id', '=', accountId)
    .where('role', '=', 'admin')
    .where('is_disabled', '=', 0)
    .where('password_hash', 'is not', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(ADMINS_MAX)
    .execute()
  if (rows.length === 0 && parentId !== null) return adminMailboxes(store, parentId, null)
  return rows.map(({ email }) => email)
}

export function createUserDirectory(store: Pick<Store, 'db'>) {
  const where = async (column: 'id' | 'email', value: string) =>
    (await store.db.selectFrom('users').selectAll().where(column, '=', value).executeTakeFirst()) ?? null

  return {
    /** Oldest first. */
    async list(
      accountId: string,
      { role, limit, skip }: { role?: UserRole | undefined; limit: number; skip: number },
    ): Promise<{ rows: User[]; total: number }> {
      let query = store.db.selectFrom('users').where('account_id', '=', accountId)
      if (role !== undefined) query = query.where('role', '=', role)
      const count = await countOf(query)
      const rows = await query
        .selectAll()
        .orderBy('created_at')
        .orderBy('id')
        .limit(limit)
        .offset(skip)
        .execute()
      return { rows, total: count }
    },
    /** @throws NotFound */
    async read(accountId: string, id: string): Promise<User> {
      const row = /^[0-9a-f]{24}$/.test(id) ? await where('id', id) : null
      if (row?.account_id !== accountId) throw new NotFound('No such user exists')
      return row
    },
    // Queries for an invalid address too: the response time must not depend on the address.
    /** By an address in the form that somebody typed. */
    byEmail: (text: string): Promise<User | null> => where('email', emailOf(text) ?? ''),
    byId: (id: string): Promise<User | null> => where('id', id),
    /** How many users the account has, and whether any account has one of that address. */
    async room(accountId: string, email: string): Promise<{ count: number; isTaken: boolean }> {
      const { count, same } = await store.db
        .selectFrom('users')
        .select((of) => [
          of.fn.countAll<number>().filterWhere('account_id', '=', accountId).as('count'),
          of.fn.countAll<number>().filterWhere('email', '=', email).as('same'),
        ])
        .executeTakeFirstOrThrow()
      return { count: Number(count), isTaken: Number(same) > 0 }
    },
  }
}

/** As stored: in lower case; null for anything but a plain ASCII address. */
export function emailOf(text: string): string | null {
  if (text.length > EMAIL_LENGTH_MAX || !/^[\x21-\x7e]+$/.test(text)) return null
  try {
    const { local, domain, name } = parseMailbox(text)
    return name === '' && /^[^\s"(),:;<>@[\\\]]+$/.test(local) ? `${local}@${domain}`.toLowerCase() : null
  } catch {
    return null
  }
}
