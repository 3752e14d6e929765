import { describe } from 'node:test'

export type Database = 'sqlite' | 'postgres'

/**
 * Defines tests for each database, in a suite of its name: `eachDatabase((database) => test('name', ...))`. The runner says
 * which of them this run is about (`scripts/test.ts`, point 4); a file that runs by itself has both.
 */
export function eachDatabase(define: (database: Database) => void): void {
  const chosen = process.env['SENDWRIGHT_TEST_DATABASES'] ?? 'both'
  for (const database of ['sqlite', 'postgres'] as const)
    if (chosen === 'both' || chosen === database) describe(database, () => define(database))
}
