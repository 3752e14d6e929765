/** Pages of the logs of the bench's traffic: every kind of filter, over one, 20 and all domains. */
import type { AccountDirectory } from '../../src/people/accounts/account-directory.ts'
import type { Store } from '../../src/platform/store/store.ts'
import { type Condition, conditionsOf } from '../../src/watching/logs/log-filter.ts'
import type { LogQuery } from '../../src/watching/logs/log-query.ts'
import { createLogReader } from '../../src/watching/logs/log-reader.ts'
import { isRateLimit } from './figure-bench.ts'
import { percentile } from './stats.ts'
import {
  ACCOUNT,
  accountOf,
  createRandom,
  DAY_MS,
  DAYS,
  DOMAINS,
  domainName,
  END_MS,
  SUBACCOUNT_IDS,
  tagOf,
  zipf,
} from './traffic.ts'

const random = createRandom(5)
const anyDomain = zipf(DOMAINS, random)
/** A domain of the account itself. */
function ownDomain(): number {
  for (;;) {
    const at = anyDomain()
    if (accountOf(at) === ACCOUNT) return at
  }
}
const below = (count: number) => Math.floor(random() * count)

type Given = [attribute: string, comparator: string, ...values: string[]]

interface LogKind {
  name: string
  filter?: () => Given[]
  more?: Partial<LogQuery>
}

/** The attribute has no index of its own from `subject` on. */
const KINDS: readonly LogKind[] = [
  { name: 'everything' },
  { name: 'everything, ascending', more: { ascending: true } },
  { name: 'failed', more: { events: ['failed'] } },
  { name: 'complained', more: { events: ['complained'] } },
  { name: 'opened, clicked', more: { events: ['opened', 'clicked'] } },
  { name: 'hard_bounces', more: { events: [], metrics: ['hard_bounces'] } },
  { name: 'suppressed_unsubscribed', more: { events: [], metrics: ['suppressed_unsubscribed'] } },
  { name: 'unique_opened', more: { events: [], metrics: ['unique_opened'] } },
  { name: 'delivered_two_plus_attempts', more: { events: [], metrics: ['delivered_two_plus_attempts'] } },
  { name: 'tag', filter: () => [['tag', '=', tagOf(ownDomain(), 0)]] },
  { name: 'tag of all domains', filter: () => [['tag', '=', 'receipt']] },
  {
    name: 'tag and country',
    filter: () => [
      ['tag', '=', 'receipt'],
      ['country', '=', 'BH'],
    ],
  },
  { name: 'recipient', filter: () => [['recipient', '=', `reader-${below(500_000)}@gmail.com`]] },
  { name: 'message id', filter: () => [['message_id', '=', `${below(4_000_000)}.bench@${domainName(0)}`]] },
  { name: 'subject =, one message', filter: () => [['subject', '=', `Your order ${below(4_000_000)}`]] },
  { name: 'subject contains, frequent', filter: () => [['subject', 'contains', 'order 39']] },
  { name: 'subject contains, none', filter: () => [['subject', 'contains', 'invoice']] },
  { name: 'subject not contains', filter: () => [['subject', 'not contains', 'order']] },
  { name: 'recipient contains', filter: () => [['recipient', 'contains', `reader-${below(500_000)}@`]] },
  { name: 'recipient domain', filter: () => [['recipient_domain', '=', `r${below(20_000)}.example`]] },
  { name: 'provider', filter: () => [['recipient_provider', '=', 'French']] },
  { name: 'country', filter: () => [['country', '=', 'AA', 'XX']] },
  { name: 'ip', filter: () => [['ip', '=', '192.0.2.3']] },
  { name: 'ip, none', filter: () => [['ip', '=', '192.0.2.77']] },
  { name: 'reply code', filter: () => [['delivery_status_code', '=', '450']] },
  { name: 'reply contains', filter: () => [['delivery_status_message', 'contains', 'too many']] },
  { name: 'severity', filter: () => [['severity', '=', 'permanent']] },
  {
    name: 'device, bot',
    filter: () => [
      ['device', '=', 'tablet'],
      ['bot', '=', 'gmail'],
    ],
  },
  { name: 'attachment', filter: () => [['attachment_filename', '=', 'invoice.pdf']] },
  { name: 'mailing list', filter: () => [['mailing_list_address', 'contains', 'news@']] },
  { name: 'variables', filter: () => [['user_variables', 'contains', '"order":"17"']] },
  { name: 'size', filter: () => [['size', '>', '20000000']] },
  { name: 'with totals', more: { totals: true } },
]

export const LOG_SCOPES = ['one domain', '20 domains', 'all domains', 'with subaccounts'] as const
type LogScope = (typeof LOG_SCOPES)[number]
const RANGES_DAYS = [1, 30, DAYS]

function scopeOf(scope: LogScope): Given[] {
  if (scope === 'one domain') return [['domain', '=', domainName(ownDomain())]]
  if (scope === '20 domains')
    return [['domain', '=', ...Array.from({ length: 20 }, (_, at) => domainName(at * 13))]]
  return []
}

function queryOf(kind: LogKind, scope: LogScope, days: number): LogQuery {
  const given = [...(kind.filter?.() ?? []), ...scopeOf(scope)]
  const filter: Condition[] = conditionsOf({
    AND: given.map(([attribute, comparator, ...values]) => ({ attribute, comparator, values })),
  })
  return {
    start: '',
    end: '',
    lowUs: (END_MS - days * DAY_MS) * 1000,
    highUs: END_MS * 1000,
    ascending: false,
    limit: 50,
    events: null,
    metrics: null,
    filter,
    subaccounts: scope === 'with subaccounts',
    totals: false,
    ...kind.more,
  }
}

export interface LogTimes {
  name: string
  scope: LogScope
  p50: number
  p95: number
  longest: number
  /** Items of the largest page. */
  items: number
}

/** First pages, and those that their tokens lead to. The percentiles are those of the best of `runs` rounds. */
export async function askLogs(
  store: Store,
  { times, runs }: { times: number; runs: number },
): Promise<LogTimes[]> {
  const accounts: Pick<AccountDirectory, 'byId' | 'childrenOf'> = {
    byId: () => null,
    childrenOf: async () => [...SUBACCOUNT_IDS],
  }
  const retentionMs = (DAYS + 1) * DAY_MS
  const logs = createLogReader({ store, accounts, facts: { isRateLimit }, retentionMs })
  const signal = new AbortController().signal
  const found: LogTimes[] = []
  for (const kind of KINDS) {
    for (const scope of LOG_SCOPES) {
      const rounds: number[][] = []
      let items = 0
      for (let run = 0; run < runs; run++) {
        const seen: number[] = []
        for (let at = 0; at < times; at++) {
          const query = queryOf(kind, scope, RANGES_DAYS[at % RANGES_DAYS.length] as number)
          let position = { gap: null, up: query.ascending, start: null } as
            | Parameters<typeof logs.page>[0]
            | object
          for (let page = 0; page < 2 && position; page++) {
            const begunAt = performance.now()
            const request = { accountId: ACCOUNT, query, totals: null, ...position } as Parameters<
              typeof logs.page
            >[0]
            const answer = await logs.page(request, END_MS, signal)
            seen.push(performance.now() - begunAt)
            items = Math.max(items, answer.items.length)
            position = answer.links.next as object
          }
        }
        rounds.push(seen)
      }
      const best = rounds.sort((a, b) => percentile(a, 0.95) - percentile(b, 0.95))[0] as number[]
      const figures = {
        p50: percentile(best, 0.5),
        p95: percentile(best, 0.95),
        longest: percentile(best, 1),
      }
      found.push({ name: kind.name, scope, items, ...figures })
    }
  }
  return found
}
