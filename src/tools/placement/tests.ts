/** Sends a test: one message, a copy of its own to each seed, accepted in one transaction with the rows of the test. */

import { newId, randomHex } from '../../base/ids.ts'
import { BadRequest, present } from '../../base/process/errors.ts'
import { isPlainObject } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { type AcceptParts, acceptMessage } from '../../mail/accept/accept.ts'
import { DEFAULT_OPTIONS } from '../../mail/record/options.ts'
import type { Draft } from '../../mail/request/draft.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { accountLockStatements } from '../../platform/store/account-rows.ts'
import type { PlacementTestRow, SeedListRow } from '../../platform/store/schema.ts'
import { insert, insertMany, StaleWrite, type Statement } from '../../platform/store/store.ts'
import {
  AddressSyntaxError,
  addressKey,
  bareAddress,
  type Mailbox,
  parseMailbox,
} from '../../protocols/mime/address.ts'
import type { SpamScore } from '../../protocols/scanners/spam-score.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { UsageLimits } from '../../watching/alerts/usage-limits.ts'
import { usageStatements } from '../../watching/metrics/usage.ts'
import type { SeedLists } from './lists.ts'
import { NO_FACTS } from './received-copy.ts'
import { chosenSeeds, type Seed, type Seeds } from './seeds.ts'
import { fewerStatement, SHARE_MS } from './store.ts'

export interface TestParts extends Pick<Core, 'store' | 'clock'> {
  domains: Core['domains']
  accept: AcceptParts
  seeds: Seeds
  lists: SeedLists
  /** Scores the message; null: no scorer is set. Stores nothing. */
  score: ((draft: Draft, domain: Domain) => Promise<SpamScore | null>) | null
  /** Limits of usage that accounts have set. */
  usageLimits: UsageLimits
  /** A test waits to be read. */
  wake(): void
}

/** Tests of an account that are not complete: each costs a message and looks into every mailbox. */
const OPEN_MAX = 10
/** Tests of an account; results are kept for 90 days. */
const TESTS_MAX = 2_000
const SUBJECT_LENGTH_MAX = 998

/** Resolves to the test's row. @throws BadRequest, NotFound, and as acceptMessage */
export async function runTest(
  parts: TestParts,
  caller: Caller,
  body: unknown,
  remoteAddress: string,
): Promise<PlacementTestRow> {
  const given = isPlainObject(body) ? body : {}
  const from = authorOf(textOf(given, 'from'))
  const subject = textOf(given, 'subject')
  if (subject.length > SUBJECT_LENGTH_MAX) throw new BadRequest('subject is too long')
  const domain = await parts.domains.byName(from.domain)
  if (domain?.accountId !== caller.accountId) throw new BadRequest(`Domain not found: ${from.domain}`)
  const { accountId } = caller
  const list = await listOf(parts, accountId, given['seed_list'])
  const filter = [given['provider_filter'] ?? []].flat().map(String).join(',')
  const seeds = chosenSeeds(
    { ...parts.seeds, all: chosenSeeds(parts.seeds, list.seed_filter, list.provider_filter) },
    '',
    filter,
  )
  const use = { accountId, domain: domain.name, metric: 'seed_test_count' } as const
  const limits = await limitsOf(parts, use)
  // Before the message is stored; the transaction decides.
  await limits.checked(() => parts.store.commit(limits.statements))
  const row = newTest(parts.clock.now(), accountId, list, bareAddress(from), subject, seeds.length)
  if (seeds.length === 0) {
    await limits.checked(() => parts.store.commit([...limits.statements, ...statementsOf(row, seeds, null)]))
    return row
  }
  const draft = draftOf(given, from, subject, seeds, row.id)
  const spam = (await parts.score?.(draft, domain)) ?? null
  if (spam) row.spam_json = JSON.stringify(spam)
  await limits.checked(() =>
    acceptMessage(parts.accept, draft, {
      domain,
      method: 'http',
      originatingIp: remoteAddress,
      keyId: caller.keyId,
      also: ({ id }) => [
        ...limits.statements,
        ...statementsOf(row, seeds, id),
        ...parts.usageLimits.countStatements(use),
      ],
    }),
  )
  parts.wake()
  return row
}

function textOf(given: Record<string, unknown>, name: string): string {
  const value = given[name]
  if (typeof value !== 'string' || value === '') throw new BadRequest(`Missing mandatory parameter: ${name}`)
  return value
}

function authorOf(text: string): Mailbox {
  try {
    return parseMailbox(text)
  } catch (error) {
    if (error instanceof AddressSyntaxError) throw new BadRequest('from is not an address')
    throw error
  }
}

async function listOf({ lists }: TestParts, accountId: string, name: unknown): Promise<SeedListRow> {
  if (name === undefined || name === null || name === '') return lists.ofAll(accountId)
  return present(await lists.find(accountId, String(name)), 'seed list not found')
}

/** Commits of tests go through it, so that tests which begin at the same time cannot pass the limits. */
async function limitsOf({ store, usageLimits }: TestParts, use: Parameters<UsageLimits['of']>[0]) {
  const { accountId } = use
  const ofUsage = await usageLimits.of(use)
  const open = fewerStatement('open tests', accountId, OPEN_MAX)
  const all = fewerStatement('tests', accountId, TESTS_MAX)
  return {
    statements: [...accountLockStatements(store, accountId), open, all, ...ofUsage.statements],
    /** @throws BadRequest, Forbidden if a limit is reached; else as `commit` */
    async checked<T>(commit: () => Promise<T>): Promise<T> {
      try {
        return await ofUsage.checked(commit)
      } catch (error) {
        const failed = error instanceof StaleWrite ? error.statement : null
        if (failed === open) throw new BadRequest('Too many inbox placement tests in progress')
        if (failed === all) throw new BadRequest('Too many inbox placement results: delete some first')
        throw error
      }
    },
  }
}

function newTest(
  now: number,
  accountId: string,
  list: SeedListRow,
  sender: string,
  subject: string,
  seeds: number,
): PlacementTestRow {
  const at = Math.floor(now)
  return {
    ...{ id: newId(now), account_id: accountId, list_id: list.id, sender, subject, message_id: null },
    status: seeds === 0 ? 'completed' : 'processing',
    ...{ created_at: at, updated_at: at, share_id: randomHex(16), shared: 0, share_until: at + SHARE_MS },
    spam_json: null,
  }
}

function statementsOf(row: PlacementTestRow, seeds: readonly Seed[], messageId: string | null): Statement[] {
  const rows = seeds.map(({ address, provider }) => ({
    ...{ test_id: row.id, address, provider },
    ...{ state: 'pending' as const, destination: '', category: '', seconds: null },
    ...{ facts_json: JSON.stringify(NO_FACTS), problem: '' },
  }))
  const { created_at: at, list_id: listId, account_id: accountId } = row
  return [
    insert('placement_tests', { ...row, message_id: messageId }),
    ...insertMany('placement_seeds', rows),
    { sql: 'UPDATE seed_lists SET last_result_at = ? WHERE id = ?', values: [at, listId] },
    ...(seeds.length > 0 ? usageStatements(accountId, at, { seed_test_count: 1 }) : []),
  ]
}

/** In batch mode, so that no seed sees the others. */
function draftOf(
  given: Record<string, unknown>,
  from: Mailbox,
  subject: string,
  seeds: readonly Seed[],
  resultId: string,
): Draft {
  const recipients = seeds.map(({ address }) => parseMailbox(address))
  const template = given['template_name']
  const html = given['html']
  if (typeof template !== 'string' && typeof html !== 'string')
    throw new BadRequest('Missing mandatory parameter: html')
  return {
    ...{ from: [from], to: recipients, cc: [], recipients, subject },
    body: { kind: 'parts', text: null, html: typeof html === 'string' ? html : null, amp: null, files: [] },
    headers: [],
    userVariables: {},
    tags: [`placement-${resultId}`],
    template:
      typeof template === 'string'
        ? {
            name: template,
            version: null,
            text: true,
            variables: isPlainObject(given['variables']) ? given['variables'] : {},
          }
        : null,
    recipientVariables: new Map(recipients.map((mailbox) => [addressKey(mailbox), {}])),
    options: DEFAULT_OPTIONS,
  }
}
