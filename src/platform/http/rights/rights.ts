/**
 * The rights table: which roles may call what. It is the source of the checks and of `x-rights` in the machine
 * description, of docs/rights.md and of the test that tries every operation in every role.
 */

export type Role = 'admin' | 'developer' | 'support' | 'basic' | 'sending' | 'billing'
export type UserRole = Exclude<Role, 'sending'>
export type Access = 'read' | 'write'

/** From the fewest rights to the most. */
export const USER_ROLES: readonly UserRole[] = ['basic', 'billing', 'support', 'developer', 'admin']

/** Rows of the rights table. */
export type RightsArea = keyof typeof RIGHTS

/** In the order of the columns. */
export const ROLES = ['admin', 'developer', 'support', 'basic', 'sending', 'billing'] as const
export type Right = 'RW' | 'R' | 'W' | '-'
type Row = readonly [Right, Right, Right, Right, Right, Right]

/**
 * auth-limits.md section 3. `W` alone is sending, with a domain key for its own domain only. `billing` is a role of users
 * only: it reads what `basic` reads, and message limits and the account besides (accounts.md section 7 rule 2).
 */
export const RIGHTS = {
  //                  admin developer support basic sending billing
  domains: ['RW', 'RW', 'R', 'R', '-', 'R'],
  'messages:send': ['RW', 'RW', '-', '-', 'W', '-'],
  'messages:stored': ['R', 'R', 'R', 'R', '-', 'R'],
  events: ['RW', 'RW', 'R', 'R', '-', 'R'],
  suppressions: ['RW', 'RW', 'RW', '-', '-', '-'],
  allowlist: ['RW', 'RW', 'RW', 'R', '-', 'R'],
  routes: ['RW', 'RW', 'R', 'R', '-', 'R'],
  templates: ['RW', 'RW', 'R', 'R', '-', 'R'],
  lists: ['RW', 'RW', 'RW', 'R', '-', 'R'],
  ips: ['RW', 'RW', 'R', 'R', '-', 'R'],
  subaccounts: ['RW', 'RW', 'R', 'R', '-', 'R'],
  validation: ['RW', 'RW', 'R', 'R', '-', 'R'],
  alerts: ['RW', 'RW', 'R', 'R', '-', 'R'],
  sandbox: ['RW', 'RW', 'RW', 'R', '-', 'R'],
  account: ['RW', 'R', '-', '-', '-', 'R'],
  'message-limits': ['RW', 'R', '-', '-', '-', 'RW'],
  keys: ['RW', 'R', '-', '-', '-', '-'],
  // The user's own password, second factor and sessions.
  'own-user': ['RW', 'RW', 'RW', 'RW', '-', 'RW'],
} as const satisfies Record<string, Row>

/**
 * Whom an operation is for besides the role, checked so late that a refused attempt is in the audit log. By the dispatch:
 * `first`: the first account, which is the operator's. By the operation itself: `parent`: accounts that are no subaccount;
 * `itself`: callers that act for their own account; `machine`: the command line on the machine itself; `user`: sessions and keys of a user;
 * `user-session`: sessions of a user.
 */
export type Only = 'parent' | 'first' | 'itself' | 'machine' | 'user' | 'user-session'

export interface Requirement {
  area: RightsArea
  /** POST queries of metrics, logs and tags are `read`. */
  access: Access
  /** Name of the path parameter that holds the domain; needed where domain keys are accepted. */
  domain?: string
  /** Default: everybody with the right. */
  only?: Only
  /** The public key may call it too (decision 100). */
  publicKey?: true
}

/** The column of a role: its right in each area. */
export function rightsOf(role: Role): Record<RightsArea, Right> {
  const areas = Object.keys(RIGHTS) as RightsArea[]
  return Object.fromEntries(areas.map((area) => [area, RIGHTS[area][ROLES.indexOf(role)]])) as Record<
    RightsArea,
    Right
  >
}
