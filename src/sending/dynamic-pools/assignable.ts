/** Domains that are not enrolled and could be (dynamic-pools.md section 5 rule 7). */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { BadRequest } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { invalidFormat } from '../../base/values.ts'
import type { Store } from '../../platform/store/store.ts'
import { compilePattern, type Pattern } from '../../receiving/routes/match/pattern.ts'
import { PatternSyntaxError } from '../../receiving/routes/match/pattern-syntax.ts'
import { type Domain, domainOfRow } from '../domains/domain.ts'

/** Domains in one answer. */
const ITEMS_MAX = 1_000
const PATTERN_LENGTH_MAX = 255
/** Read at a time. */
const PORTION = 500
/** Instructions of the pattern times characters of names: about two seconds for the worst pattern (decision 69). */
const COST_MAX = 20_000_000
/** The same between two turns of the event loop: some ten milliseconds. */
const COST_OF_TURN = 100_000

/** @throws BadRequest for a bad pattern, or one that is too costly for so many domains */
export async function assignableDomains(
  { store, clock }: { store: Store; clock: Clock },
  accountId: string,
  expression: string | undefined,
  signal: AbortSignal,
): Promise<Domain[]> {
  const matches = matcherOf(expression)
  const found: Domain[] = []
  for (let after = ''; found.length < ITEMS_MAX && !signal.aborted; ) {
    const rows = await store.db
      .selectFrom('domains')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('dynamic_pool_id', 'is', null)
      .where('name', '>', after)
      .orderBy('name')
      .limit(PORTION)
      .execute()
    for (const row of rows) {
      const domain = domainOfRow(row, clock.now())
      if (domain.state !== 'disabled' && (await matches(domain.name))) found.push(domain)
    }
    after = rows.at(-1)?.name ?? ''
    if (rows.length < PORTION) break
  }
  return found.slice(0, ITEMS_MAX)
}

function matcherOf(expression: string | undefined): (name: string) => boolean | Promise<boolean> {
  if (expression === undefined) return () => true
  const pattern = compiled(expression)
  let cost = 0
  let turns = 0
  return async (name) => {
    cost += pattern.size * name.length
    if (cost > COST_MAX || pattern.isTooCostly(name))
      throw new BadRequest('the regular expression is too costly for so many domains')
    if (cost > COST_OF_TURN * (turns + 1)) {
      turns = Math.floor(cost / COST_OF_TURN)
      await nextTurn()
    }
    return pattern.anywhere(name) !== null
  }
}

function compiled(expression: string): Pattern {
  if (expression.length > PATTERN_LENGTH_MAX) throw invalidFormat('domain', expression)
  try {
    return compilePattern(expression)
  } catch (error) {
    throw error instanceof PatternSyntaxError ? invalidFormat('domain', expression) : error
  }
}
