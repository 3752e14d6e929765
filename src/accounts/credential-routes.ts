/** SMTP credentials over HTTP (accounts.md section 6), under their own paths and the older `mailboxes`. */
import { formatRfc2822 } from '../base/dates.ts'
import { BadRequest } from '../base/errors.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { Domain } from '../domains/domain.ts'
import { ownDomain } from '../domains/routes.ts'
import { type Operation, operation } from '../http/operation.ts'
import { limitAndSkip } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import type { CredentialRow } from '../store/schema.ts'
import type { Credentials } from './credentials.ts'

const TAG = 'Credentials'
const READ = { area: 'keys', access: 'read' } as const
const WRITE = { area: 'keys', access: 'write' } as const
const NOTE = 'Store these credentials, they will not be shown again'
const PASSWORD = {
  name: 'password',
  type: 'string',
  repeated: true,
  description: '5 to 32 characters; absent: one is made',
} as const

export function credentialRoutes(credentials: Credentials, domains: DomainDirectory): Operation[] {
  const path = '/v3/domains/{domain_name}/credentials' as const
  const older = '/v3/{domain_name}/mailboxes'
  return [
    operation({
      method: 'GET',
      path,
      aliases: [older],
      id: 'listCredentials',
      tag: TAG,
      summary: 'List the SMTP logins of a domain',
      auth: READ,
      params: [
        { name: 'skip', type: 'integer', description: 'Leave out the first ones', default: 0 },
        { name: 'limit', type: 'integer', description: '1 to 1000', default: 100 },
      ],
      responses: { 200: { description: 'Logins' } },
      async handler({ params, path: parts, caller }) {
        const domain = await ownDomain(domains, caller, parts.domain_name)
        const page = limitAndSkip(params, {
          default: 100,
          max: 1000,
          text: "Limit parameter can't be larger than 1000",
        })
        const { rows, total } = await credentials.list(domain, page)
        return { items: rows.map(view), total_count: total }
      },
    }),
    operation({
      method: 'POST',
      path,
      aliases: [older],
      id: 'createCredentials',
      audit: { given: ['login'] },
      tag: TAG,
      summary: 'Make SMTP logins, or set the passwords of existing ones',
      auth: WRITE,
      params: [
        {
          name: 'login',
          type: 'string',
          repeated: true,
          required: true,
          description: 'Local part or address; also `mailbox`',
        },
        { name: 'mailbox', type: 'string', repeated: true, description: 'The same as login' },
        PASSWORD,
        { name: 'system', type: 'boolean', description: 'Accepted and without effect' },
      ],
      responses: { 200: { description: 'Made' } },
      async handler({ params, path: parts, caller }) {
        const domain = await ownDomain(domains, caller, parts.domain_name)
        params.boolean('system')
        const given = pairs(params)
        const made = await credentials.set(domain, given)
        return { message: `Created ${given.length} credentials pair(s)`, ...shownOnce(made) }
      },
    }),
    operation({
      method: 'PUT',
      path: `${path}/{spec}`,
      aliases: [`${older}/{spec}`],
      id: 'changeCredential',
      tag: TAG,
      summary: 'Change the password of an SMTP login',
      auth: WRITE,
      params: [PASSWORD],
      responses: { 200: { description: 'Changed' } },
      async handler({ params, path: parts, caller }) {
        const domain = await ownDomain(domains, caller, parts.domain_name)
        const made = await credentials.changePassword(domain, parts.spec, params.text('password'))
        const shown = new Map(made === null ? [] : [[fullLogin(domain, parts.spec), made]])
        return { message: 'Password changed', ...shownOnce(shown) }
      },
    }),
    operation({
      method: 'DELETE',
      path: `${path}/{spec}`,
      aliases: [`${older}/{spec}`],
      id: 'deleteCredential',
      tag: TAG,
      summary: 'Delete an SMTP login',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'Deleted' } },
      async handler({ path: parts, caller }) {
        const domain = await ownDomain(domains, caller, parts.domain_name)
        return {
          message: 'Credentials have been deleted',
          spec: await credentials.remove(domain, parts.spec),
        }
      },
    }),
    operation({
      method: 'DELETE',
      path,
      aliases: [older],
      id: 'deleteCredentials',
      tag: TAG,
      summary: 'Delete all SMTP logins of a domain but the system one',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'Deleted' } },
      async handler({ path: parts, caller }) {
        const domain = await ownDomain(domains, caller, parts.domain_name)
        return {
          message: 'All domain credentials have been deleted',
          count: await credentials.removeAll(domain),
        }
      },
    }),
  ]
}

/** Logins with their passwords: one password per login, or none at all. */
function pairs(params: Params): { login: string; password: string | undefined }[] {
  const logins = [...params.texts('login'), ...params.texts('mailbox')]
  const passwords = params.texts('password')
  if (logins.length === 0) throw new BadRequest("Parameter 'login' is missing")
  if (passwords.length > 0 && passwords.length !== logins.length) {
    throw new BadRequest('as many passwords as logins are needed, or none')
  }
  return logins.map((login, index) => ({ login, password: passwords[index] }))
}

const fullLogin = (domain: Domain, spec: string) =>
  spec.includes('@') ? spec.toLowerCase() : `${spec.toLowerCase()}@${domain.name}`

const shownOnce = (made: ReadonlyMap<string, string>) =>
  made.size === 0 ? {} : { note: NOTE, credentials: Object.fromEntries(made) }

const view = (row: CredentialRow) => ({
  mailbox: row.login,
  login: row.login,
  created_at: formatRfc2822(new Date(row.created_at)),
  size_bytes: null,
})
