/** Who asked for an export, and what it may read by now: keys are revoked, and users lose rights, while a long list is written. */
import { Forbidden } from '../../base/process/errors.ts'
import { disabledReason, LOCAL_KEY_ID } from '../../people/keys/api-keys.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Role } from '../../platform/http/rights/rights.ts'
import type { ExportRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'

export type Requester = Pick<ExportRow, 'key_id' | 'user_id' | 'role'>

export function requesterOf({ kind, keyId, sessionKeyId, userId, role }: Caller): Requester {
  const key_id = kind === 'session' ? (sessionKeyId ?? '') : keyId === LOCAL_KEY_ID ? '' : keyId
  return { key_id, user_id: key_id === '' ? (userId ?? '') : '', role }
}

/** The role that it has now. @throws Forbidden if it may do nothing any more */
export async function roleNow(
  { db }: Pick<Store, 'db'>,
  { key_id, user_id, role }: Requester,
  now: number,
): Promise<Role> {
  if (key_id !== '') {
    const key = await db
      .selectFrom('api_keys')
      .select(['role', 'disabled_reason', 'expires_at'])
      .where('id', '=', key_id)
      .executeTakeFirst()
    if (key === undefined || disabledReason(key, now) !== null)
      throw new Forbidden('the key that asked for the export is no longer valid')
    return key.role as Role
  }
  if (user_id === '') return role as Role
  const user = await db
    .selectFrom('users')
    .select('role')
    .where('id', '=', user_id)
    .where('is_disabled', '=', 0)
    .executeTakeFirst()
  if (user === undefined) throw new Forbidden('the user who asked for the export is no longer active')
  return user.role as Role
}
