/** A user in responses of the API (accounts.md section 7). */
import type { Of } from '../../base/shape.ts'
import type { UserRole } from '../../platform/http/rights/rights.ts'
import { isActive, type User } from '../accounts/user-directory.ts'
import type { USER } from './shapes.ts'

type UserView = Of<typeof USER>

/** `2022-12-20T16:52:01.892000`, UTC without a zone. */
const timestamp = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString().replace('Z', '000'))

export function userView(user: User): UserView {
  const [local = '', domain = ''] = user.email.split('@')
  return {
    id: user.id,
    activated: isActive(user),
    name: user.name,
    is_disabled: user.is_disabled === 1,
    email: user.email,
    email_details: {
      address: user.email,
      is_valid: true,
      parts: { domain, local_part: local, display_name: user.name },
    },
    role: user.role as UserRole,
    account_id: user.account_id,
    opened_ip: user.opened_ip ?? '',
    is_master: user.is_master === 1,
    metadata: {},
    tfa_enabled: user.totp_sealed !== null,
    tfa_active: user.totp_sealed !== null,
    tfa_created_at: timestamp(user.totp_created_at),
    password_updated_at: timestamp(user.password_updated_at),
    preferences: { time_zone: 'UTC', time_format: '24h', programming_language: 'curl' },
    auth: { method: user.auth_method === 'oidc' ? 'oidc' : 'password' },
    github_user_id: null,
    salesforce_user_id: null,
    migration_status: 'done',
  }
}
