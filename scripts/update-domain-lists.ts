/**
 * Writes the lists of `src/tools/validation/data` from the packages that hold them, which package.json pins:
 *
 *     npm install --save-dev --save-exact disposable-email-domains-js@<version>
 *     node scripts/update-domain-lists.ts
 *
 * The service reads the files; the packages are needed for this script and its test only.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const DATA = join(import.meta.dirname, '../src/tools/validation/data')
const require = createRequire(import.meta.url)

/** Role names of validation.md section 2 rule 1 that the package lacks are added. */
const ROLES_OF_THE_CONTRACT = [
  ...['abuse', 'admin', 'billing', 'contact', 'help', 'hostmaster', 'info', 'marketing', 'no-reply'],
  ...['noreply', 'postmaster', 'privacy', 'root', 'sales', 'security', 'spam', 'support', 'webmaster'],
]

/** Left out of both lists: titles of chief officers, who are persons, and names below such a title. */
const TITLES = /(?:^|\.)c[a-z]o$/

/** The texts of both files by name. `date`: of the update, as YYYY-MM-DD. */
export function listFiles(date: string): Record<string, string> {
  const disposable =
    require('disposable-email-domains-js/dist/dict/disposable_email_blocklist.json') as string[]
  const roles = require('role-based-email-addresses') as string[]
  return {
    'disposable-domains.txt': fileOf('disposable-email-domains-js', 'CC0-1.0', date, disposable),
    'role-names.txt': fileOf('role-based-email-addresses', 'MIT, Copyright (c) 2015 Mixmax, Inc', date, [
      ...roles,
      ...ROLES_OF_THE_CONTRACT,
    ]),
  }
}

function fileOf(name: string, licence: string, date: string, entries: readonly string[]): string {
  const { version } = JSON.parse(readFileSync(packageFile(name), 'utf8')) as { version: string }
  const sorted = [...new Set(entries.map((entry) => entry.trim().toLowerCase()))]
    .filter((entry) => entry !== '' && !TITLES.test(entry))
    .sort()
  return `# From the npm package ${name} ${version}, taken on ${date}. Licence: ${licence}.\n${sorted.join('\n')}\n`
}

const packageFile = (name: string) => join(import.meta.dirname, '../node_modules', name, 'package.json')

if (import.meta.main) {
  const today = new Date().toISOString().slice(0, 10)
  for (const [name, text] of Object.entries(listFiles(today))) writeFileSync(join(DATA, name), text)
}
