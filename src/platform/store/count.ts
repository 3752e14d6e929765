import type { SelectQueryBuilder } from 'kysely'

/** How many rows a query finds that selects no columns yet. */
export async function countOf<DB, Table extends keyof DB>(
  query: SelectQueryBuilder<DB, Table, unknown>,
): Promise<number> {
  const row = await query.select(({ fn }) => fn.countAll().as('count')).executeTakeFirstOrThrow()
  return Number((row as { count: unknown }).count)
}
