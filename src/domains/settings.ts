/** The settings of a domain as callers send them (domains.md D2, D4, D8-D11), validated with the contract's texts. */
import { BadRequest } from '../base/errors.ts'
import { invalidChoice } from '../base/values.ts'
import type { ParamDoc } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import { atomOf, hostNameOf, rootDomainOf, unclaimableReason } from './domain-names.ts'

/** What a caller may change about a domain; absent: unchanged. */
export interface DomainChanges {
  spamAction?: string | undefined
  wildcard?: boolean | undefined
  useAutomaticSenderSecurity?: boolean | undefined
  webScheme?: string | undefined
  webPrefix?: string | undefined
  mailfromHost?: string | undefined
  messageTtlSeconds?: number | undefined
  requireTls?: boolean | undefined
  skipVerification?: boolean | undefined
  /** Null removes the address. */
  archiveTo?: string | null | undefined
}

/** How the domain's signing authority is chosen. */
export type DkimChoice =
  | { kind: 'self' }
  /** The nearest registered parent, if there is one. */
  | { kind: 'parent' }
  | { kind: 'root'; host: string }
  | { kind: 'named'; host: string }

export interface NewDomain extends Omit<DomainChanges, 'mailfromHost'> {
  name: string
  smtpPassword?: string | undefined
  encryptIncomingMessage: boolean
  dkim: DkimChoice
  dkimSelector: string
  dkimBits: number
  ips: string[] | null
  poolId: string | null
}

const PASSWORD_LENGTH_MIN = 5
const PASSWORD_LENGTH_MAX = 32
const URL_LENGTH_MAX = 2048
const SPAM_ACTIONS = ['disabled', 'tag', 'block', 'delete'] as const
const WEB_SCHEMES = ['http', 'https'] as const

const CHANGE_DOCS: ParamDoc[] = [
  {
    name: 'smtp_password',
    type: 'string',
    description: 'Password of the login postmaster@<name>; 5 to 32 characters',
  },
  {
    name: 'spam_action',
    type: 'string',
    description: 'What happens to spam',
    values: ['disabled', 'tag', 'block'],
  },
  { name: 'wildcard', type: 'boolean', description: 'Accept mail for subdomains too' },
  {
    name: 'use_automatic_sender_security',
    type: 'boolean',
    description: 'The service keeps and rotates the keys',
  },
  { name: 'web_scheme', type: 'string', description: 'Scheme of tracking links', values: WEB_SCHEMES },
  { name: 'web_prefix', type: 'string', description: 'First label of the tracking host' },
  { name: 'message_ttl', type: 'integer', description: 'Seconds; 0 is the default of the service' },
  { name: 'require_tls', type: 'boolean', description: 'Deliver over TLS only' },
  { name: 'skip_verification', type: 'boolean', description: 'Do not verify certificates' },
  { name: 'archive_to', type: 'string', description: 'http(s) URL that gets a copy of delivered mail' },
]

export const UPDATE_DOCS: ParamDoc[] = [
  ...CHANGE_DOCS,
  { name: 'mailfrom_host', type: 'string', description: 'Host of return paths; bounces are sent to its MX' },
]

export const CREATE_DOCS: ParamDoc[] = [
  { name: 'name', type: 'string', description: 'Host name, ASCII', required: true, example: 'example.com' },
  ...CHANGE_DOCS,
  { name: 'force_dkim_authority', type: 'boolean', description: 'false: a registered parent domain signs' },
  { name: 'force_root_dkim_host', type: 'boolean', description: 'Sign with the root domain', default: false },
  { name: 'dkim_host_name', type: 'string', description: 'The domain, one below it, or its root' },
  { name: 'dkim_key_size', type: 'integer', description: '1024 or 2048', default: 2048 },
  { name: 'dkim_selector', type: 'string', description: 'Atom without dots', default: 'k1' },
  { name: 'ips', type: 'string', description: 'Addresses to send from, separated by commas' },
  { name: 'pool_id', type: 'string', description: 'IP pool to send from' },
  {
    name: 'encrypt_incoming_message',
    type: 'boolean',
    description: 'Is stored and has no effect; cannot be undone',
    default: false,
  },
]

/** @throws BadRequest with the texts of domains.md section 3 */
export function readNewDomain(params: Params, ttlMax: number): NewDomain {
  const name = hostNameOf(params.required('name', "Parameter 'name' is missing"))
  if (name === null) throw new BadRequest('Invalid domain name')
  const reason = unclaimableReason(name)
  if (reason !== null) throw new BadRequest(`Invalid domain name: ${name} ${reason}`)
  const ips = params.texts('ips').flatMap((text) => text.split(',').map((ip) => ip.trim()))
  return {
    ...readSettings(params, ttlMax),
    name,
    smtpPassword: readPassword(params),
    encryptIncomingMessage: params.boolean('encrypt_incoming_message') ?? false,
    dkim: readDkimChoice(params, name),
    dkimSelector: readAtom(params, 'dkim_selector') ?? 'k1',
    dkimBits: Number(params.oneOf('dkim_key_size', ['1024', '2048']) ?? 2048),
    ips: ips.length > 0 ? ips : null,
    poolId: params.text('pool_id') ?? null,
  }
}

/** The fields of D4. */
export const readChanges = (params: Params, ttlMax: number): DomainChanges => ({
  ...readSettings(params, ttlMax),
  mailfromHost: readMailfromHost(params),
})

/** Those that a new domain may have as well. */
function readSettings(params: Params, ttlMax: number): Omit<DomainChanges, 'mailfromHost'> {
  const spam = params.oneOf('spam_action', SPAM_ACTIONS)
  return {
    spamAction: spam === 'delete' ? 'block' : spam,
    wildcard: params.boolean('wildcard'),
    useAutomaticSenderSecurity: params.boolean('use_automatic_sender_security'),
    webScheme: params.oneOf('web_scheme', WEB_SCHEMES),
    webPrefix: readWebPrefix(params),
    messageTtlSeconds: readTtl(params, ttlMax),
    requireTls: params.boolean('require_tls'),
    skipVerification: params.boolean('skip_verification'),
    archiveTo: readArchiveTo(params),
  }
}

/** @throws BadRequest naming the bounds */
export function readPassword(params: Params): string | undefined {
  const password = params.text('smtp_password')
  if (password === undefined) return undefined
  const length = [...password].length
  const fault = length < PASSWORD_LENGTH_MIN ? 'short' : length > PASSWORD_LENGTH_MAX ? 'long' : null
  if (fault)
    throw new BadRequest(
      `Password is too ${fault}. It must be between ${PASSWORD_LENGTH_MIN} and ${PASSWORD_LENGTH_MAX} characters.`,
    )
  return password
}

function readAtom(params: Params, field: string): string | undefined {
  const text = params.text(field)
  if (text === undefined) return undefined
  const atom = atomOf(text)
  if (atom === null) throw new BadRequest(`${field} must be a valid atom`)
  return atom
}

export const readWebPrefix = (params: Params): string | undefined => readAtom(params, 'web_prefix')

export function readMailfromHost(params: Params): string | undefined {
  const text = params.text('mailfrom_host')
  if (text === undefined) return undefined
  const host = hostNameOf(text)
  if (host === null || host !== text) throw invalidChoice('mailfrom_host', text)
  return host
}

/** `form`: the member in which the error for a value over the maximum is returned. */
export function readTtl(
  params: Params,
  max: number,
  form: 'message' | 'Reason' = 'message',
): number | undefined {
  const seconds = params.integer('message_ttl', { min: 0 })
  if (seconds !== undefined && seconds > max)
    throw new BadRequest(`message_ttl is larger than the account maximum of ${max}`, { form })
  return seconds
}

function readArchiveTo(params: Params): string | null | undefined {
  const text = params.given('archive_to')
  if (text === undefined) return undefined
  if (text === '') return null
  const url = URL.canParse(text) ? new URL(text) : null
  // No user info: it would store a password in plain text, and nothing is ever posted to such a URL.
  const isUsable =
    url && /^https?:$/.test(url.protocol) && /^[\x21-\x7e]+$/.test(text) && !url.username && !url.password
  if (!isUsable || text.length > URL_LENGTH_MAX) throw invalidChoice('archive_to', text)
  return text
}

/** domains.md rule 15. */
function readDkimChoice(params: Params, name: string): DkimChoice {
  const forceSelf = params.boolean('force_dkim_authority')
  const forceRoot = params.boolean('force_root_dkim_host')
  const hostName = params.text('dkim_host_name')
  if (hostName === undefined) {
    if (forceRoot) return { kind: 'root', host: rootDomainOf(name) }
    return { kind: forceSelf === false ? 'parent' : 'self' }
  }
  if (forceSelf !== undefined || forceRoot !== undefined)
    throw new BadRequest('dkim_host_name cannot be used with force_dkim_authority or force_root_dkim_host')
  const host = hostNameOf(hostName)
  if (host === null || !(host === name || host.endsWith(`.${name}`) || host === rootDomainOf(name)))
    throw invalidChoice('dkim_host_name', hostName)
  return { kind: 'named', host }
}
