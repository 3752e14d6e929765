/**
 * Writes the table of stores in docs/api/people.md from src/carry/person/stores.ts: `npx node scripts/person-stores.ts`. A
 * test compares them.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OTHER_STORES, STORES } from '../src/carry/person/stores.ts'

export const PEOPLE_PAGE = join(import.meta.dirname, '../docs/api/people.md')
const TABLE = /(<!-- stores -->\n)[\s\S]*?(<!-- end of stores -->)/

const EXPORTED = { none: 'no', kept: 'yes', erased: 'yes', pseudonymised: 'yes' } as const
const DONE = {
  none: 'holds no person',
  kept: 'kept',
  erased: 'erased',
  pseudonymised: 'pseudonymised',
} as const

/** The page with the table as it should be. */
export function withStores(page: string): string {
  const rows = [
    ...Object.entries(STORES).map(([name, rule]) => [`\`${name}\``, EXPORTED[rule.does], rule] as const),
    ...Object.entries(OTHER_STORES).map(([name, rule]) => [name, 'no', rule] as const),
  ].map(([name, exported, { does, why }]) => `| ${name} | ${exported} | ${DONE[does]} | ${why} |`)
  const table = [
    '| Store | Exported | Erasure | What it holds, and why |',
    '|---|---|---|---|',
    ...rows,
  ].join('\n')
  return page.replace(TABLE, (_, begin: string, end: string) => `${begin}\n${table}\n\n${end}`)
}

if (import.meta.main) writeFileSync(PEOPLE_PAGE, withStores(readFileSync(PEOPLE_PAGE, 'utf8')))
