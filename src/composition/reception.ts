/** Puts together what mail to the service's own addresses does: bounces, complaints, unsubscribes by mail. */
import { classifyLate } from '../bounces/classify.ts'
import { reportAddresses, unsubscribeAddresses } from '../bounces/own-addresses.ts'
import { createReports } from '../bounces/reports.ts'
import type { RuleSet } from '../bounces/rules.ts'
import type { EventRecord } from '../events/event.ts'
import { createReception } from '../inbound/reception.ts'
import type { KnownDeliveries } from '../messages/known-deliveries.ts'
import type { Statement, Store } from '../store/store.ts'
import type { Tokens } from '../tracking/tokens.ts'
import type { Unsubscriber } from '../tracking/unsubscribe.ts'
import type { Core } from './core.ts'

export interface ReturnedTo {
  known: KnownDeliveries
  /** What a bounce means. */
  rules: RuleSet
  /** Rows that belong into the transaction of these events: webhooks, statistics. */
  alongside(events: readonly EventRecord[]): Statement[]
  tokens: Tokens
  unsubscriber: Unsubscriber
}

/** What the SMTP port does with clients that do not log in. */
export function receptionOf(core: Core, { known, rules, alongside, tokens, unsubscriber }: ReturnedTo) {
  const { config, clock, log, store, sealer, domains } = core
  const mac = (data: Uint8Array) => sealer.mac('return-path', data)
  const isOwnHost = async (host: string) =>
    host === config.hostname.toLowerCase() ||
    (await domains.byName(host)) !== null ||
    (await isReturnPathHost(store, host))
  const classify = (failure: Parameters<typeof classifyLate>[1]) => classifyLate(rules, failure)
  const reports = createReports({ store, deliveries: known, mac, classify, clock, alongside })
  return createReception({
    readers: [
      reportAddresses({ reports, mac, isOwnHost, log }),
      unsubscribeAddresses({
        readToken: tokens.readUnsubscribeAddress,
        deliveries: known,
        unsubscribe: (from) => unsubscriber.unsubscribe(from, null),
        log,
      }),
    ],
    isOwnDomain: isOwnHost,
    clock,
    unlimited: config.rateLimit === null,
  })
}

async function isReturnPathHost(store: Store, host: string): Promise<boolean> {
  const query = store.db.selectFrom('domains').select('id').where('mailfrom_host', '=', host).limit(1)
  return (await query.executeTakeFirst()) !== undefined
}
