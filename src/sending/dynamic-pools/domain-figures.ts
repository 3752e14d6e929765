/** Figures of one domain for a health check: without mail in test mode (dynamic-pools.md section 3 rule 6). */
import type { Clock } from '../../base/time/clock.ts'
import { countOf, type Figures } from '../../watching/metrics/figures.ts'
import type { Domain } from '../domains/domain.ts'
import type { DomainFigures } from './bands.ts'

interface DomainFigureParts {
  figures: Figures
  clock: Clock
  windowMs: number
}

type SenderOfFigures = Pick<Domain, 'accountId' | 'name'>

/** Figures of the window that ends now, in whole hours. @throws BadRequest when too many queries of the account wait */
export async function figuresOf(
  { figures, clock, windowMs }: DomainFigureParts,
  { accountId, name }: SenderOfFigures,
): Promise<DomainFigures> {
  const now = clock.now()
  const [row] = await figures.read({
    accountIds: [accountId],
    ...{ startMs: now - windowMs, endMs: now, resolution: 'hour', dimensions: [] },
    filter: [{ attribute: 'domain', comparator: '=', values: [name] }],
  })
  if (row === undefined) return { processed: 0, bounced: 0, delivered: 0, complained: 0 }
  const { counts } = row
  const tests = counts.test_delivered
  return {
    processed: Math.max(0, countOf('processed_count', counts) - tests),
    bounced: Math.max(0, countOf('bounced_count', counts)),
    delivered: Math.max(0, countOf('delivered_count', counts) - tests),
    complained: countOf('complained_count', counts),
  }
}
