/**
 * Looks for the copies of tests in the mailboxes of seeds. One process at a time does; each mailbox is opened once in a run,
 * for all tests that wait for it. What is found is written at once; a copy that is not there in time is missing, and a test
 * whose copies are all decided is complete.
 */
import type { Core } from '../../core.ts'
import type { PlacementSeedRow, PlacementTestRow } from '../../platform/store/schema.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { type FoundCopy, findCopies, problemOf } from './mailbox.ts'
import type { Seeds } from './seeds.ts'
import { seedsOf } from './store.ts'

interface ReadingParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  seeds: Seeds
  /** After which a copy is missing. */
  waitMs: number
}

/** Between two looks into the mailboxes: 15 seconds, less where copies are missing sooner. */
export const lookEveryMs = (waitMs: number) => Math.min(15_000, Math.max(1_000, Math.floor(waitMs / 10)))

const TESTS_PER_RUN = 200
const AT_A_TIME = 4

interface Open {
  test: PlacementTestRow
  seed: PlacementSeedRow
}

/** One look. Resolves to whether tests still wait. */
export async function readMailboxes(parts: ReadingParts, signal: AbortSignal): Promise<boolean> {
  const { store } = parts
  const tests = await store.db
    .selectFrom('placement_tests')
    .selectAll()
    .where('status', '=', 'processing')
    .orderBy('created_at')
    .limit(TESTS_PER_RUN)
    .execute()
  if (tests.length === 0) return false
  const rows = await seedsOf(
    store,
    tests.map(({ id }) => id),
  )
  const open = tests.flatMap((test) =>
    (rows.get(test.id) ?? []).filter(({ state }) => state === 'pending').map((seed) => ({ test, seed })),
  )
  const byAddress = [...Map.groupBy(open, ({ seed }) => seed.address)]
  for (let at = 0; at < byAddress.length && !signal.aborted; at += AT_A_TIME)
    await Promise.all(
      byAddress.slice(at, at + AT_A_TIME).map(([address, some]) => readMailbox(parts, address, some, signal)),
    )
  if (signal.aborted) return true
  await giveUp(parts, tests)
  return true
}

async function readMailbox(
  { store, log, seeds, clock }: ReadingParts,
  address: string,
  open: readonly Open[],
  signal: AbortSignal,
): Promise<void> {
  // One that was taken out of the file is missing in time.
  const seed = seeds.all.find((one) => one.address === address)
  if (!seed) return
  const ids = open.flatMap(({ test }) => test.message_id ?? [])
  let copies: FoundCopy[]
  try {
    copies = await findCopies(seed, ids, signal)
  } catch (error) {
    if (signal.aborted) return
    const problem = problemOf(error, seed)
    log.warn({ err: error, seed: address, problem }, 'the mailbox of a seed cannot be read')
    await noteProblem(store, open, problem)
    return
  }
  const now = Math.floor(clock.now())
  const statements = copies.flatMap((copy) => {
    const test = open.find((one) => one.test.message_id === copy.messageId)?.test
    return test ? [foundStatement(test, address, copy), touchedStatement(test.id, now)] : []
  })
  if (statements.length > 0) await store.commit(statements)
  await noteProblem(store, open, '')
}

/** Shown with the copies that wait for this mailbox, and kept with those that become missing. */
async function noteProblem(store: Store, open: readonly Open[], problem: string): Promise<void> {
  const changed = open.filter(({ seed }) => seed.problem !== problem)
  if (changed.length === 0) return
  await store.commit(
    changed.map(({ seed: { test_id, address } }) => ({
      sql: "UPDATE placement_seeds SET problem = ? WHERE test_id = ? AND address = ? AND state = 'pending'",
      values: [problem, test_id, address],
    })),
  )
}

function foundStatement(test: PlacementTestRow, address: string, copy: FoundCopy): Statement {
  const seconds =
    copy.arrivedAt === null
      ? null
      : Math.max(0, Math.round((copy.arrivedAt - Number(test.created_at)) / 1000))
  return {
    sql: `UPDATE placement_seeds SET state = 'delivered', problem = '', destination = ?, category = ?, seconds = ?, facts_json = ?
      WHERE test_id = ? AND address = ? AND state = 'pending'`,
    values: [copy.destination, copy.category, seconds, JSON.stringify(copy.facts), test.id, address],
  }
}

const touchedStatement = (id: string, now: number): Statement => ({
  sql: 'UPDATE placement_tests SET updated_at = ? WHERE id = ?',
  values: [now, id],
})

/** After the looks, so that a copy that came in the meantime was seen. */
async function giveUp(
  { store, clock, waitMs }: ReadingParts,
  tests: readonly PlacementTestRow[],
): Promise<void> {
  const now = Math.floor(clock.now())
  const statements = tests.flatMap(({ id, created_at }): Statement[] => [
    ...(Number(created_at) + waitMs > now
      ? []
      : [
          {
            sql: "UPDATE placement_seeds SET state = 'missing' WHERE test_id = ? AND state = 'pending'",
            values: [id],
          },
        ]),
    {
      sql: `UPDATE placement_tests SET status = 'completed', updated_at = ? WHERE id = ? AND status = 'processing'
        AND NOT EXISTS (SELECT 1 FROM placement_seeds WHERE test_id = ? AND state = 'pending')`,
      values: [now, id, id],
    },
  ])
  await store.commit(statements)
}
