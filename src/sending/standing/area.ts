/** Accounts and domains that stop themselves, and daily budgets of new accounts. Built after the area that notifies people of them. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { createAccountHolds } from '../../mail/deliver/claim/account-holds.ts'
import { createQueue } from '../../mail/deliver/claim/queue.ts'
import type { SystemMail } from '../../people/users/mails.ts'
import { createStandingChanges, type StandingNotices } from './changes.ts'
import { type ContentFigures, createStandingChecks } from './checks.ts'
import type { KnownStandings } from './known-standings.ts'
import { standingRoutes } from './routes.ts'

interface StandingUses {
  known: KnownStandings
  wakeDelivery(): void
  sendMail: SystemMail
  notices: StandingNotices
  /** Null: no outbound check is asked. */
  contentFigures: ContentFigures | null
}

export function standingArea(core: Core, uses: StandingUses): Area {
  const { store, clock, leaseOwner, recorder } = core
  const holds = createAccountHolds(store, createQueue(store, leaseOwner, recorder), clock)
  const changes = createStandingChanges({ ...core, ...uses, holds })
  return {
    operations: standingRoutes({ ...core, ...uses, changes }),
    jobs: [uses.known.job, createStandingChecks({ ...core, ...uses, changes })],
    async accountDeleted(accountId) {
      const tables = [
        ...[
          ['standing_counts', 'account_id'],
          ['standings', 'account_id'],
        ],
        ...[
          ['standing_policies', 'account_id'],
          ['account_days', 'name'],
        ],
      ]
      await store.commit(
        tables.map(([table, column]) => ({
          sql: `DELETE FROM ${table} WHERE ${column} = ?`,
          values: [accountId],
        })),
      )
      await uses.known.changed()
    },
    stop: () => uses.known.close(),
  }
}
