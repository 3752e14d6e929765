/**
 * Writes docs/rights.md from the machine description of a service that it starts: `node scripts/rights-page.ts`. A test
 * compares the page with the description.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DescribedRights } from '../src/platform/http/rights/auth.ts'
import { type Only, RIGHTS, type RightsArea, ROLES } from '../src/platform/http/rights/rights.ts'
import { describeService } from './description.ts'

export const RIGHTS_PAGE = join(import.meta.dirname, '../docs/rights.md')

interface Description {
  paths: Record<string, Record<string, { 'x-rights'?: DescribedRights | { public: true } }>>
}

const TITLES: Record<RightsArea, string> = {
  domains: 'Domains, domain keys, tracking, webhooks',
  'messages:send': 'Sending',
  'messages:stored': 'Stored messages',
  events: 'Events, statistics, tags, bounce classification',
  suppressions: 'Bounces, complaints, unsubscribes',
  allowlist: 'Allowlist of recipients',
  routes: 'Routes',
  templates: 'Templates',
  lists: 'Mailing lists',
  ips: 'IP addresses and pools',
  subaccounts: 'Subaccounts',
  validation: 'Validation of addresses',
  alerts: 'Alerts',
  sandbox: 'Recipients of sandbox domains',
  account: 'Account, signing key, audit log',
  'message-limits': 'Message limits',
  keys: 'API keys, SMTP credentials, users, sessions, addresses of callers',
  'own-user': "The user's own password, second factor and sessions",
}

const ONLY: Record<Only, string> = {
  parent: 'not for subaccounts',
  first: 'the first account only',
  itself: 'not on behalf of a subaccount',
  machine: 'the command line on the machine only',
  user: 'sessions and keys of a user only',
  'user-session': 'sessions of a user only',
}

const HEAD = `# Rights

Made by \`node scripts/rights-page.ts\` from the rights table (\`src/platform/http/rights/rights.ts\`), which is also what the service checks.

A call is allowed if the role of its key or user has the right, and the resource belongs to the account of the key, or to
the subaccount that a parent acts for. A resource of another account gets the answer of one that does not exist. A key of
kind \`domain\` has the role sending and may send for its own domain only. The role billing is for users.

## By area

R: read, W: write.
`

/** The whole page. @throws Error naming an operation without rights */
export function rightsPage({ paths }: Description): string {
  const areas = Object.entries(RIGHTS) as [RightsArea, readonly string[]][]
  const table = areas.map(([area, row]) => `| ${TITLES[area]} | ${row.join(' | ')} |`)
  const operations = operationsOf(paths)
  const sections = areas.flatMap(([area]) => {
    const rows = operations.filter(({ rights }) => 'area' in rights && rights.area === area)
    return rows.length === 0 ? [] : [section(TITLES[area], rows)]
  })
  const open = operations.filter(({ rights }) => 'public' in rights)
  const lines = [
    HEAD,
    `| Area | ${ROLES.join(' | ')} |`,
    `|---|${'---|'.repeat(ROLES.length)}`,
    ...table,
    '',
    '## By operation',
    '',
    ...sections,
    section('Without a key: health, descriptions, and links whose token is the right', open),
  ]
  return `${lines.join('\n').trimEnd()}\n`
}

interface OperationRow {
  call: string
  rights: DescribedRights | { public: true }
}

function operationsOf(paths: Description['paths']): OperationRow[] {
  const rows = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { 'x-rights': rights }]) => {
      const call = `${method.toUpperCase()} \`${path}\``
      if (rights === undefined) throw new Error(`${call} has no rights`)
      return { call, path, rights }
    }),
  )
  return rows.sort((one, other) => (one.path < other.path ? -1 : Number(one.path > other.path)))
}

const section = (title: string, rows: readonly OperationRow[]) =>
  [`### ${title}`, '', '| Operation | Roles |', '|---|---|', ...rows.map(rowLine), ''].join('\n')

function rowLine({ call, rights }: OperationRow): string {
  if ('public' in rights) return `| ${call} | everybody |`
  const also = rights.public_key ? ', the public key' : ''
  const only = rights.only === undefined ? '' : `; ${ONLY[rights.only]}`
  return `| ${call} | ${rights.roles.join(', ')}${also}${only} |`
}

if (import.meta.main) await writeFile(RIGHTS_PAGE, rightsPage(await describeService<Description>()))
