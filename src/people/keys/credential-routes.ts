/** SMTP credentials over HTTP (accounts.md section 6), under their own paths and the older `mailboxes`. */

import { BadRequest } from '../../base/process/errors.ts'
import { integer, list, type Of, object, text } from '../../base/shape.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  flagParam,
  type InputOf,
  limitParam,
  skipParam,
  textParam,
  textsParam,
} from '../../platform/http/request/inputs.ts'
import type { CredentialRow } from '../../platform/store/schema.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { type DomainDirectory, ownDomain } from '../../sending/domains/names/directory.ts'
import type { Credentials } from './credentials.ts'
import { CREDENTIAL, SHOWN_ONCE } from './shapes.ts'

const api = operationsOf({ tag: 'Credentials', auth: { area: 'keys' } })
const LIMIT_MAX = 1000
const NOTE = 'Store these credentials, they will not be shown again'
const MESSAGE = text('What was done')
const PASSWORD = '5 to 32 characters; absent: one is made'
const NEW_PARAMS = {
  system: flagParam('Accepted and without effect'),
  login: { ...textsParam('Local part or address'), required: true },
  mailbox: textsParam('Older name of `login`, instead of it or besides'),
  password: textsParam(PASSWORD),
}

export function credentialRoutes(credentials: Credentials, domains: DomainDirectory): Operation[] {
  const path = '/v3/domains/{domain_name}/credentials' as const
  const older = '/v3/{domain_name}/mailboxes'
  return [
    api.get(path, {
      aliases: [older],
      id: 'listCredentials',
      summary: 'List the SMTP logins of a domain',
      params: {
        limit: limitParam(100, LIMIT_MAX, { tooLarge: `Limit parameter can't be larger than ${LIMIT_MAX}` }),
        skip: skipParam(),
      },
      answers: {
        200: object('Logins', {
          items: list('Of this page', CREDENTIAL),
          total_count: integer('Of all pages'),
        }),
      },
      async handler({ input, path: parts, caller }) {
        const domain = await ownDomain(domains, caller, parts.domain_name)
        const { rows, total } = await credentials.list(domain, input())
        return { items: rows.map(view), total_count: total }
      },
    }),
    api.post(path, {
      aliases: [older],
      id: 'createCredentials',
      audit: { given: ['login'] },
      summary: 'Make SMTP logins, or set the passwords of existing ones',
      params: NEW_PARAMS,
      answers: { 200: object('Made, or their passwords set', { message: MESSAGE, ...SHOWN_ONCE }) },
      async handler({ input, path: parts, caller }) {
        const domain = await ownDomain(domains, caller, parts.domain_name)
        const given = pairs(input())
        const made = await credentials.set(domain, given)
        return { message: `Created ${given.length} credentials pair(s)`, ...shownOnce(made) }
      },
    }),
    api.put(`${path}/{spec}`, {
      aliases: [`${older}/{spec}`],
      id: 'changeCredential',
      summary: 'Change the password of an SMTP login',
      params: { password: textParam(PASSWORD) },
      answers: { 200: object('Changed', { message: MESSAGE, ...SHOWN_ONCE }) },
      async handler({ input, path: parts, caller }) {
        const domain = await ownDomain(domains, caller, parts.domain_name)
        const made = await credentials.changePassword(domain, parts.spec, input().password)
        const shown = new Map(made === null ? [] : [[fullLogin(domain, parts.spec), made]])
        return { message: 'Password changed', ...shownOnce(shown) }
      },
    }),
    api.delete(`${path}/{spec}`, {
      aliases: [`${older}/{spec}`],
      id: 'deleteCredential',
      summary: 'Delete an SMTP login',
      answers: { 200: object('Deleted', { message: MESSAGE, spec: text('Full address of the login') }) },
      async handler({ path: parts, caller }) {
        const domain = await ownDomain(domains, caller, parts.domain_name)
        return {
          message: 'Credentials have been deleted',
          spec: await credentials.remove(domain, parts.spec),
        }
      },
    }),
    api.delete(path, {
      aliases: [older],
      id: 'deleteCredentials',
      summary: 'Delete all SMTP logins of a domain but the system one',
      answers: { 200: object('Deleted', { message: MESSAGE, count: integer('How many') }) },
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
function pairs({ login, mailbox, password: passwords }: InputOf<typeof NEW_PARAMS>) {
  const logins = [...login, ...mailbox]
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

const view = (row: CredentialRow): Of<typeof CREDENTIAL> => ({
  mailbox: row.login,
  login: row.login,
  created_at: formatRfc2822(new Date(row.created_at)),
  size_bytes: null,
})
