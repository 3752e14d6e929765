/** The first check of a submission, before its body is read. */

import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { maySend } from '../../people/accounts/account-directory.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { checkMaySend } from './decide.ts'
import type { SendFactsParts } from './send-facts.ts'

/** @throws Forbidden when the domain cannot send now (messages.md rule 9) */
export const checkSender = (
  { accounts, allowUnverified }: Pick<SendFactsParts, 'accounts' | 'allowUnverified'>,
  domain: Domain,
): MaybePromise<void> =>
  whenKnown(accounts.byId(domain.accountId), (account) => {
    checkMaySend(domain, { accountMaySend: maySend(account), allowUnverified })
  })
