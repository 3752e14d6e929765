/** Seed lists and results as the API shows them (validation.md section 6). */
import { formatRfc3339 } from '../../base/time/dates.ts'
import type { PlacementSeedRow, PlacementTestRow, SeedListRow } from '../../platform/store/schema.ts'
import type { SpamScore } from '../../protocols/scanners/spam-score.ts'
import type { CopyFacts } from './received-copy.ts'
import type { Seed, Seeds } from './seeds.ts'
import type { Counts, ResultView, SeedListView, SeedResult, SeedView, Sharing } from './shapes.ts'

const date = (ms: number) => formatRfc3339(new Date(Number(ms)))

function countsOf(provider: string, seeds: readonly PlacementSeedRow[]): Counts {
  const number = (matches: (seed: PlacementSeedRow) => boolean) => seeds.filter(matches).length
  const categories: Record<string, number> = { primary: 0, promotions: 0, updates: 0 }
  for (const { category } of seeds)
    if (category !== '') categories[category] = (categories[category] ?? 0) + 1
  return {
    delivered: number(({ state }) => state === 'delivered'),
    missing: number(({ state }) => state === 'missing'),
    pending: number(({ state }) => state === 'pending'),
    spam: number(({ destination }) => destination === 'spam'),
    inbox: number(({ state, destination }) => state === 'delivered' && destination !== 'spam'),
    total: seeds.length,
    provider,
    categories,
  }
}

/** `latest`: the seeds of the list's newest test. */
export function listView(
  row: SeedListRow,
  chosen: readonly Seed[],
  seeds: Seeds,
  latest: readonly PlacementSeedRow[],
): SeedListView {
  return {
    Id: row.id,
    kid: row.id,
    ID: row.id,
    AccountID: row.account_id,
    name: row.name,
    target_email: row.target_email,
    sending_domains: JSON.parse(row.sending_domains_json) as string[],
    seed_filter: row.seed_filter,
    provider_filter: row.provider_filter,
    mailing_list: '',
    created_at: date(row.created_at),
    updated_at: date(row.updated_at),
    last_result_at: date(row.last_result_at ?? row.created_at),
    has_results: row.last_result_at !== null,
    Seeds: chosen.length === 0 ? null : chosen.map((seed) => seedView(row, seed, seeds, latest)),
    tags: row.remote_id === '' ? {} : { remote_id: row.remote_id },
    delivery_stats: { all: countsOf('all', latest) },
    SeedQuality: chosen.length,
    is_auto_generated: row.is_auto === 1,
  }
}

/** Never with its password. */
function seedView(
  list: SeedListRow,
  seed: Seed,
  { changedAt }: Seeds,
  latest: readonly PlacementSeedRow[],
): SeedView {
  const last = latest.find(({ address }) => address === seed.address)
  const at = date(changedAt)
  const sentAt = list.last_result_at === null ? at : date(list.last_result_at)
  return {
    ...{ AccountID: list.account_id, id: seed.key, email: seed.address, provider: seed.provider },
    ...{ created_at: at, updated_at: at, max_email_count_hit_at: at, attributes: { region: seed.region } },
    ...{ last_sent_to_at: sentAt, last_delivered_at: sentAt },
    ...(last && { sync_state: last.state }),
  }
}

/** `row`: null if the list was deleted. */
export interface ResultList {
  row: SeedListRow | null
  view: ResultView['Box']
}

export function testView(
  row: PlacementTestRow,
  seeds: readonly PlacementSeedRow[],
  list: ResultList,
  detail: 'whole' | 'without-headers' | 'shared' = 'whole',
): ResultView {
  const byProvider = [...Map.groupBy(seeds, ({ provider }) => provider)]
  return {
    Id: row.id,
    rid: row.id,
    result_id: row.id,
    AccountID: row.account_id,
    KeyBoxID: row.list_id,
    keybox_email: list.row?.target_email ?? '',
    subject: row.subject,
    sender: row.sender,
    seedlist_name: list.row?.name ?? '',
    status: row.status,
    created_at: date(row.created_at),
    updated_at: date(row.updated_at),
    attributes: {},
    campaign_id: '',
    sharing_enabled: row.shared === 1,
    sharing_id: row.share_id,
    sharing_expires_at: date(row.share_until),
    Box: list.view,
    seed_results: seeds.map((seed, at) =>
      detail === 'shared' ? sharedSeed(seed, at) : seedResult(seed, detail === 'whole'),
    ),
    ...(row.spam_json !== null && { spamassassin: spamView(JSON.parse(row.spam_json) as SpamScore) }),
    delivery_stats: Object.fromEntries(
      byProvider.map(([provider, some]) => [provider, countsOf(provider, some)]),
    ),
  }
}

function seedResult(seed: PlacementSeedRow, withHeaders: boolean): SeedResult {
  const { originating_ip, dkim, spf, dmarc, headers } = JSON.parse(seed.facts_json) as CopyFacts
  return {
    email: seed.address,
    provider: seed.provider,
    destination: seed.destination,
    state: seed.state,
    ...{ originating_ip, tags: [], dkim, spf, dmarc, headers: withHeaders ? headers : [] },
    extensions: {
      category: seed.category,
      ...(seed.seconds !== null && { seconds: Number(seed.seconds) }),
      ...(seed.problem !== '' && { problem: seed.problem }),
    },
  }
}

/** Addresses are left out, and header fields, which name them in traces; so is what is wrong with the operator's mailbox. */
const sharedSeed = (seed: PlacementSeedRow, at: number): SeedResult =>
  seedResult({ ...seed, address: `seed-${at + 1}@${seed.provider}`, problem: '' }, false)

const spamView = ({ score, isSpam, required }: SpamScore) => ({
  ...{ is_spam: isSpam, score },
  ...(required !== undefined && { required }),
  rules: [],
})

export const sharingView = (row: PlacementTestRow, baseUrl: string): Sharing => {
  const url = `${baseUrl}/v4/inbox/sharing/public/${row.share_id}`
  return {
    result_id: row.id,
    expires_at: date(row.share_until),
    enabled: row.shared === 1,
    url_id: row.share_id,
    ...{ url, api_url: url },
  }
}
