/** Parsing of domain names, host names and selectors from callers. */
import { isIP } from 'node:net'
import { getDomain } from 'tldts'

const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})+$`)
/** RFC 6376 §3.1: sub-domain labels; underscores occur in practice and are valid in DNS. */
const ATOM = /^[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?$/
/** Leaves room for the longest prefix of our records, `<selector>._domainkey.`, within the 253 characters of DNS. */
const DOMAIN_LENGTH_MAX = 180
const SELECTOR_LENGTH_MAX = 63
/** Owners in the list's private part (`github.io`) give names to others, as registries do. Callers have checked the name. */
const LIST_OPTIONS = { allowPrivateDomains: true, validateHostname: false, extractHostname: false }

/** A host name of at least two labels in lower case, or null: addresses, Unicode, blanks, over-long labels. */
export function hostNameOf(text: string): string | null {
  const name = text.toLowerCase()
  // Much software reads a last label of digits as an address (RFC 1123 §2.1).
  const plausible = name.length <= DOMAIN_LENGTH_MAX && HOST_NAME.test(name) && !/\.\d+$/.test(name)
  return plausible && isIP(name) === 0 ? name : null
}

/**
 * Top-level names in which nobody has a domain in public DNS, and never will (RFC 6761, RFC 7686, RFC 9476). Those for
 * examples, tests and private networks are not among them: such a network may have its own DNS.
 */
const RESERVED = /\.(localhost|invalid|onion|alt|arpa)$/

/** Why nobody can own a host name, to follow the name in a sentence; null: somebody can. Callers have checked its syntax. */
export function unclaimableReason(name: string): string | null {
  if (RESERVED.test(name)) return 'is reserved'
  // Hosts of tenants in the list's private part have an owner, who may send from them.
  const isSuffix = getDomain(name, { ...LIST_OPTIONS, allowPrivateDomains: false }) === null
  return isSuffix ? 'is a public suffix' : null
}

/** One label in lower case: web prefixes, selectors of new domains. Null if it is no atom. */
export function atomOf(text: string): string | null {
  const atom = text.toLowerCase()
  return ATOM.test(atom) ? atom : null
}

/** A selector of one or more labels (RFC 6376 §3.1) in lower case, or null. */
export function selectorOf(text: string): string | null {
  const selector = text.toLowerCase()
  const isDotAtom = selector.split('.').every((label) => ATOM.test(label))
  return selector.length <= SELECTOR_LENGTH_MAX && isDotAtom ? selector : null
}

/**
 * Hosts that give names to strangers who send mail, and are missing in the list (decision 129). Longer ones first: a tenant
 * of Microsoft's has names below both.
 */
const TENANT_HOSTS = [
  'mail.onmicrosoft.com',
  'onmicrosoft.com',
  'onmicrosoft.us',
  'partner.onmschina.cn',
  'zendesk.com',
  'freshdesk.com',
] as const

/**
 * The registrable domain of a name by the public suffix list: `example.co.uk` for `a.example.co.uk`; below hosts of tenants
 * the tenant's: `a.onmicrosoft.com`.
 */
export function rootDomainOf(name: string): string {
  const root = getDomain(name, LIST_OPTIONS) ?? name
  const host = TENANT_HOSTS.find((one) => one.endsWith(root) && isBelow(name, one))
  if (host === undefined) return root
  const tenant = name
    .slice(0, -host.length - 1)
    .split('.')
    .at(-1)
  return `${tenant}.${host}`
}

/** The ancestors of a name, nearest first, without the top-level domain. */
export function ancestorsOf(name: string): string[] {
  const labels = name.split('.')
  return labels.slice(1, -1).map((_, at) => labels.slice(at + 1).join('.'))
}

export const isBelow = (name: string, ancestor: string): boolean => name.endsWith(`.${ancestor}`)
