/** Accounts and domains that stopped themselves for what they send. */
import { formatRfc3339 } from '../../../base/time/dates.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { KnownStandings } from '../../../sending/standing/known-standings.ts'
import type { OwnCheck } from './own-check.ts'

export function stoppedSendersCheck({ list }: Pick<KnownStandings, 'list'>): OwnCheck {
  return {
    name: 'stopped-senders',
    description: 'An account or a domain is slowed or held, or would be, for what it sends.',
    metric: 'stopped_minutes',
    comparator: '>=',
    limit: '0',
    dimension: 'sender',
    everyMs: MINUTE_MS,
    async read(now) {
      return list().map(({ account_id, domain_name, state, reason, since_at, until_at }) => ({
        value: domain_name === '' ? account_id : `${account_id}/${domain_name}`,
        figure: String(Math.max(0, Math.floor((now - Number(since_at)) / MINUTE_MS))),
        since: Number(since_at),
        advice: `${domain_name === '' ? `The account ${account_id}` : `The domain ${domain_name} of account ${account_id}`} is ${state}: ${reason}. It is released by itself at ${formatRfc3339(new Date(Number(until_at)))}, or by POST /sendwright/v1/accounts/${account_id}/standing/release${domain_name === '' ? '' : ` with domain=${domain_name}`}. Find the list that the addresses came from first: its figures begin anew then.`,
      }))
    },
  }
}
