/**
 * Subaccounts. Built after the area of messages: their mail is held and released. Who acts on behalf of one is decided
 * by the accounts area (authenticator.ts).
 */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { createAccountHolds } from '../../mail/deliver/claim/account-holds.ts'
import { createQueue } from '../../mail/deliver/claim/queue.ts'
import { type ChangesParts, createChangesJob } from './changes-job.ts'
import { subaccountRoutes } from './routes.ts'
import { createSubaccounts, type SubaccountParts } from './subaccounts.ts'

type SubaccountUses = Pick<ChangesParts, 'wakeDelivery' | 'removeDomains' | 'removeAll'> &
  Pick<SubaccountParts, 'addAccount'>

export function subaccountsArea(core: Core, uses: SubaccountUses): Area {
  const { store, clock, leaseOwner, recorder } = core
  const holds = createAccountHolds(store, createQueue(store, leaseOwner, recorder), clock)
  const changes = createChangesJob({ ...core, ...uses, holds })
  return {
    operations: subaccountRoutes(createSubaccounts({ ...core, ...uses, wake: () => changes.wake() })),
    jobs: [changes],
  }
}
