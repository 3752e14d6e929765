/** `sendwright queue`: what waits and why, and what to do with it. */
import { parseWords, switches, texts, wrongArguments } from '../usage.ts'
import {
  COMMON,
  COMMON_USAGE,
  clientFor,
  type Item,
  itemsOf,
  pagesOf,
  queryOf,
  show,
  table,
  when,
} from './service.ts'

export const usage = `sendwright queue lanes|domains [--json]
sendwright queue list [FILTER] [--limit NUMBER] [--json]
sendwright queue hold|release|retry|expire|drop FILTER [--dry-run] [--json]
sendwright queue move --pool NAME FILTER [--dry-run] [--json]

Shows what waits, by lane, by domain or message by message, and changes what a filter matches:

  hold       keeps it until it is released
  release    sends what was held, at its own time
  retry      sends it now
  expire     ends it as mail that could not be delivered in time
  drop       takes it out of the queue
  move       sends it from the addresses of another pool
  --dry-run  only counts

FILTER is one or more of
  --domain NAME             sending domain
  --recipient-domain NAME   domain of recipients
  --provider NAME           as lanes shows it
  --lane NAME               as lanes shows it
  --tag TAG, --message ID   of the message
  --reason CODE             as list shows it
  --older-than TIME         accepted before: 30s, 10m, 2h or 1d ago
${COMMON_USAGE}`

/** What a person calls an action, and what the API calls it. */
const ACTIONS: Readonly<Record<string, string>> = {
  hold: 'pause',
  release: 'resume',
  retry: 'retry',
  expire: 'expire',
  drop: 'drop',
  move: 'move',
}
const VIEWS = ['lanes', 'domains', 'list']
/** Options of a filter, and what the API calls them. */
const FILTERS = {
  domain: 'domain',
  'recipient-domain': 'recipient_domain',
  provider: 'provider',
  lane: 'lane',
  tag: 'tag',
  message: 'message_id',
  reason: 'reason',
  'older-than': 'older_than',
} as const
const LIMIT_DEFAULT = 100

export async function run(args: string[]): Promise<void> {
  const names = Object.keys(FILTERS) as (keyof typeof FILTERS)[]
  const { values, positionals } = parseWords('queue', args, {
    ...COMMON,
    ...texts(...names, 'limit', 'pool'),
    ...switches('dry-run'),
  })
  const [what = 'lanes', ...more] = positionals
  const action = Object.hasOwn(ACTIONS, what) ? ACTIONS[what] : undefined
  if (more.length > 0 || (action === undefined && !VIEWS.includes(what)))
    throw wrongArguments('queue', `Name one of ${[...VIEWS, ...Object.keys(ACTIONS)].join(', ')}`)
  const filter = Object.fromEntries(
    names.flatMap((name) => (values[name] === undefined ? [] : [[FILTERS[name], values[name]]])),
  )
  if (action !== undefined && Object.keys(filter).length === 0)
    throw wrongArguments('queue', `Say what to ${what}, such as --domain NAME`)
  if (action === 'move' && values.pool === undefined) throw wrongArguments('queue', 'move needs --pool')
  const client = clientFor(values)
  if (action !== undefined) {
    const dryRun = values['dry-run'] ?? false
    const order = { action, filter, dry_run: dryRun, ...(values.pool !== undefined && { pool: values.pool }) }
    const result = await client.call('POST', '/sendwright/v1/queue/actions', order)
    show(values.json, result, () => `${actionLine(result, dryRun)}\n`)
  } else if (what === 'list') {
    const limit = limitOf(values.limit)
    const query = queryOf({ ...filter, limit: Math.min(limit, 1_000) })
    const items = await pagesOf(client, `/sendwright/v1/queue/deliveries${query}`, limit, true)
    show(values.json, items, () => deliveriesTable(items))
  } else if (what === 'domains') {
    const domains = await client.call('GET', '/sendwright/v1/queue/domains')
    show(values.json, domains, () => domainsTable(domains))
  } else {
    const lanes = itemsOf(await client.call('GET', '/sendwright/v1/queue/lanes'))
    show(values.json, lanes, () => lanesTable(lanes))
  }
}

/** @throws CommandError */
export function limitOf(text: string | undefined, command = 'queue'): number {
  if (text === undefined) return LIMIT_DEFAULT
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text)
  throw wrongArguments(command, `--limit: "${text}" is not a number from 1`)
}

function actionLine({ matched, changed }: Item, dryRun: boolean): string {
  if (dryRun) return `${matched} would be changed; nothing was.`
  return matched === changed ? `${changed} changed.` : `${changed} changed; ${matched} matched.`
}

function deliveriesTable(items: readonly Item[]): string {
  const rows = items.map((item) => {
    const reason = item['reason'] as Item
    return [
      when(item['created_at']),
      item['domain'],
      item['recipient'],
      item['attempts'],
      when(item['next_attempt_at']),
      reason['code'],
      item['message_id'],
    ]
  })
  const heading = ['ACCEPTED', 'DOMAIN', 'RECIPIENT', 'ATTEMPTS', 'NEXT', 'REASON', 'MESSAGE']
  return table(heading, rows, 'Nothing waits.')
}

function domainsTable(domains: Item): string {
  const rows = (name: string) =>
    ((domains[name] ?? []) as Item[]).map((one) => [
      one['domain'],
      one['queued'],
      one['deferred'],
      one['paused'],
      when(one['oldest']),
    ])
  const part = (title: string, name: string) =>
    table([title, 'WAITING', 'TRIED', 'HELD', 'OLDEST'], rows(name), 'Nothing waits.')
  const sending = rows('sending')
  return sending.length === 0
    ? part('', 'sending')
    : `${part('SENDING DOMAIN', 'sending')}\n${part('RECIPIENTS AT', 'recipient')}`
}

export function lanesTable(lanes: readonly Item[]): string {
  const rows = lanes.map((lane) => [
    lane['lane'],
    lane['provider'],
    lane['queued'],
    lane['due'],
    lane['deferred'],
    lane['paused'],
    lane['connections'],
    troubleOf(lane),
  ])
  const heading = ['LANE', 'PROVIDER', 'WAITING', 'DUE', 'TRIED', 'HELD', 'OPEN', 'TROUBLE']
  return table(heading, rows, 'Nothing waits.')
}

/** What keeps a lane from sending as usual, in words; empty: nothing. */
function troubleOf(lane: Item): string {
  const blocked = lane['blocked'] as Item | null
  const order = lane['override'] as { pause: Item | null; limits: Item | null } | null
  return [
    order?.pause ? `paused${order.pause['reason'] ? `: ${order.pause['reason']}` : ''}` : '',
    blocked ? `blocked until ${when(blocked['until'])}: ${blocked['reply']}` : '',
    lane['backed_off_until']
      ? `slower until ${when(lane['backed_off_until'])}: ${lane['backed_off_why']}`
      : '',
    order?.limits ? 'limits are set' : '',
  ]
    .filter(Boolean)
    .join('; ')
}
