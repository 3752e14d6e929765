/** DKIM keys over HTTP (domain-keys.md E1-E8). Private keys can be imported but never read. */
import { sql } from 'kysely'
import { foreignJsonIn } from '../../../base/foreign-json.ts'
import { BadRequest, NotFound } from '../../../base/process/errors.ts'
import { described, message, type Of } from '../../../base/shape.ts'
import { invalidFormat } from '../../../base/values.ts'
import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import {
  choiceParam,
  flagParam,
  type InputOf,
  limitParam,
  otherParam,
  parsedParam,
  textParam,
  wordParam,
} from '../../../platform/http/request/inputs.ts'
import { tokenPaging } from '../../../platform/http/request/paging.ts'
import type { Params } from '../../../platform/http/request/params.ts'
import { countOf } from '../../../platform/store/count.ts'
import type { DkimKeyRow } from '../../../platform/store/schema.ts'
import { chunkSize, readChunks } from '../../../protocols/message/mime-message.ts'
import { keyCheckOf, recordView, shownSelector, wantedKeyRecord } from '../dns/dns-records.ts'
import { readDnsState } from '../dns/verification.ts'
import { ownDomain } from '../names/directory.ts'
import { hostNameOf, selectorOf } from '../names/domain-names.ts'
import {
  AUTHORITY_CHANGED,
  AUTHORITY_KEYS,
  DOMAIN_KEY,
  KEY_PAGE,
  KEY_SWITCHED,
  type LISTED_KEY,
} from '../shapes.ts'
import { recordStates, recordViews } from '../view.ts'
import {
  activateKey,
  changeAuthority,
  createKey,
  deactivateKey,
  deleteKey,
  type KeyParts,
  keysOf,
  ownsAuthority,
  readImportedKey,
  renameSelector,
} from './dkim-keys.ts'

interface KeyRouteParts extends KeyParts {
  baseUrl: string
}

const api = operationsOf({ tag: 'Domain keys', auth: { area: 'domains' }, rateLimit: 'domains' })
const LIST_PATH = '/v1/dkim/keys'
const BITS = [1024, 2048, 4096]
/** A PEM of a 4096-bit key has 3,300 bytes; anything far larger is no key. */
const PEM_BYTES_MAX = 16 * 1024

export function domainKeyRoutes(parts: KeyRouteParts): Operation[] {
  return [...accountKeyRoutes(parts), ...authorityKeyRoutes(parts), ...domainSettingRoutes(parts)]
}

/** E1 to E3: keys of all authorities of the account. */
function accountKeyRoutes(parts: KeyRouteParts): Operation[] {
  return [
    api.get(LIST_PATH, {
      id: 'listDomainKeys',
      summary: 'List the DKIM keys of all domains',
      params: LIST_PARAMS,
      answers: { 200: KEY_PAGE },
      handler: async ({ input, caller }) => listKeys(parts, caller.accountId, input()),
    }),
    api.post(LIST_PATH, {
      id: 'createDomainKey',
      audit: { subject: ['signing_domain', 'selector'], given: ['signing_domain', 'selector', 'algorithm'] },
      summary: 'Make a DKIM key, or import an RSA key',
      params: {
        signing_domain: AUTHORITY,
        selector: wordParam('Dot-atom', selectorIn('dot-atom'), required('selector')),
        bits: parsedParam('1024, 2048 or 4096', readBits, { type: 'integer', default: 2048 }),
        algorithm: choiceParam('Kind of key', ['rsa', 'ed25519'], { default: 'rsa' }),
        pem: otherParam('RSA private key in PEM, as file or text', { type: 'file' }),
      },
      answers: { 200: described('The key, inactive', DOMAIN_KEY), 404: 'domain not found' },
      async handler({ params, input, caller }) {
        const { signing_domain: authority, selector, bits, algorithm } = input()
        const wanted = { authority, selector, bits, algorithm }
        if (!(await ownsAuthority(parts.store.db, caller.accountId, wanted.authority)))
          throw new NotFound('domain not found')
        const pem = await readPem(params)
        const pair = pem === undefined ? {} : { pair: await readImportedKey(pem), algorithm: 'rsa' as const }
        return keyView(parts, await createKey(parts, caller.accountId, { ...wanted, ...pair }), null)
      },
    }),
    api.delete(LIST_PATH, {
      id: 'deleteDomainKey',
      audit: { subject: ['signing_domain', 'selector'] },
      summary: 'Delete a DKIM key for good',
      params: {
        signing_domain: AUTHORITY,
        selector: textParam('Selector of the key', required('selector')),
      },
      answers: { 200: message('success', 'Deleted'), 404: 'domain key not found' },
      async handler({ input, caller }) {
        const { signing_domain: authority, selector } = input()
        await deleteKey(parts, caller.accountId, authority, selector.toLowerCase())
        return { message: 'success' }
      },
    }),
  ]
}

/** E4 to E6: keys of one authority. */
function authorityKeyRoutes(parts: KeyRouteParts): Operation[] {
  const change = (verb: 'activate' | 'deactivate', run: typeof activateKey) =>
    api.put(`/v4/domains/{authority_name}/keys/{selector}/${verb}`, {
      id: `${verb}DomainKey`,
      summary: verb === 'activate' ? 'Sign with a key, if DNS has its record' : 'Stop signing with a key',
      answers: { 200: described(`The key is ${verb}d`, KEY_SWITCHED) },
      async handler({ path, caller }) {
        const authority = authorityOf(path['authority_name'])
        const selector = path['selector'].toLowerCase()
        await run(parts, caller.accountId, authority, selector)
        return { message: `domain key ${verb}d`, authority, selector, active: verb === 'activate' }
      },
    })
  return [
    api.get('/v4/domains/{authority_name}/keys', {
      id: 'listAuthorityKeys',
      summary: 'List the DKIM keys of one authority',
      answers: { 200: AUTHORITY_KEYS },
      async handler({ path, caller }) {
        const authority = authorityOf(path.authority_name)
        if (!(await ownsAuthority(parts.store.db, caller.accountId, authority)))
          throw new NotFound('Domain not found')
        const keys = await keysOf(parts.store.db, caller.accountId, authority)
        keys.sort((a, b) => (shownSelector(a) < shownSelector(b) ? -1 : 1))
        return { items: await listedViews(parts, keys) }
      },
    }),
    change('activate', activateKey),
    change('deactivate', deactivateKey),
  ]
}

/** E7 and E8: whose key signs a domain's mail, and under which selector. */
function domainSettingRoutes(parts: KeyRouteParts): Operation[] {
  return [
    api.put('/v3/domains/{name}/dkim_authority', {
      id: 'changeDkimAuthority',
      summary: 'Sign with the domain’s own keys or with those of its parent',
      params: { self: flagParam('true: its own keys', required('self')) },
      answers: { 200: AUTHORITY_CHANGED },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const changed = await changeAuthority(parts, domain, input().self)
        const after = await ownDomain(parts.domains, caller, path.name)
        const states = recordStates(after, await readDnsState(parts.store, after), parts.targets)
        return {
          message: `Domain DKIM authority has ${changed ? '' : 'not '}been changed`,
          changed,
          sending_dns_records: recordViews(states).sending_dns_records,
        }
      },
    }),
    api.put('/v3/domains/{name}/dkim_selector', {
      id: 'changeDkimSelector',
      audit: { given: ['dkim_selector'] },
      summary: 'Rename the selector of a domain’s key',
      params: { dkim_selector: wordParam('Atom without dots', selectorIn('atom')) },
      answers: { 200: message('DKIM selector changed', 'Renamed') },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const { dkim_selector: selector } = input()
        if (selector !== undefined) await renameSelector(parts, domain, selector)
        return { message: 'DKIM selector changed' }
      },
    }),
  ]
}

/** The stored form of the name; '' for an invalid name: nothing has it, and no database accepts some of them. */
const authorityOf = (text: string) => hostNameOf(text) ?? ''

/** Without it: 400 `<field> is required`. */
const required = (field: string) => ({ required: true, missing: `${field} is required` }) as const

const AUTHORITY = wordParam('Authority of the key', authorityOf, required('signing_domain'))

const selectorIn = (form: 'atom' | 'dot-atom') => (text: string) => {
  const selector = selectorOf(text)
  if (selector === null || (form === 'atom' && selector.includes('.')))
    throw new BadRequest('selector must be a valid dot atom')
  return selector
}

function readBits(params: Params, name: string): number {
  const text = params.text(name) ?? '2048'
  const bits = BITS.find((number) => String(number) === text)
  if (bits === undefined) throw new BadRequest('bits must be 1024, 2048 or 4096')
  return bits
}

/** The PEM from a text field or a file part; undefined when none was sent. */
async function readPem(params: Params): Promise<string | undefined> {
  const file = params.files('pem')[0]
  if (!file) {
    const text = params.text('pem')
    return (text?.length ?? 0) > PEM_BYTES_MAX ? '' : text
  }
  if (chunkSize(file.chunk) > PEM_BYTES_MAX) return ''
  const bytes: Uint8Array[] = []
  for await (const part of readChunks([file.chunk])) bytes.push(part)
  return Buffer.concat(bytes).toString('latin1')
}

type Pivot = [page: 'first' | 'last'] | [page: 'next' | 'previous', authority: string, selector: string]

const tokenOf = (pivot: Pivot) => Buffer.from(JSON.stringify(pivot)).toString('base64url')

/** @throws BadRequest for a token that is not from a paging link */
function pivotOf(text: string, name: string): Pivot {
  const pivot = foreignJsonIn(Buffer.from(text, 'base64url').toString())
  if (Array.isArray(pivot) && pivot.every((part) => typeof part === 'string' && !part.includes('\0'))) {
    const [page] = pivot as string[]
    if (pivot.length === 1 && (page === 'first' || page === 'last')) return [page]
    if (pivot.length === 3 && (page === 'next' || page === 'previous')) return pivot as Pivot
  }
  throw invalidFormat(name, text)
}

const LIST_PARAMS = {
  limit: limitParam(10, 100, { above: 'cut' }),
  signing_domain: textParam('Only keys of this authority'),
  selector: textParam('Only keys of this selector'),
  page: wordParam('From a paging link', pivotOf),
}

const SELECTOR = sql<string>`coalesce(next_selector, selector)`

/** One page, ordered by authority and selector. */
async function listKeys(
  parts: KeyRouteParts,
  accountId: string,
  { limit, signing_domain: signingDomain, selector, page: pivot = ['first'] }: InputOf<typeof LIST_PARAMS>,
): Promise<Of<typeof KEY_PAGE>> {
  let keys = parts.store.db.selectFrom('dkim_keys').where('account_id', '=', accountId)
  if (signingDomain) keys = keys.where('authority', '=', authorityOf(signingDomain))
  if (selector) keys = keys.where(SELECTOR, '=', selectorOf(selector) ?? '')
  const count = await countOf(keys)
  const isBackwards = pivot[0] === 'last' || pivot[0] === 'previous'
  if (pivot.length === 3) {
    const [, authority, after] = pivot
    const beyond = isBackwards ? '<' : '>'
    keys = keys.where((eb) =>
      eb.or([
        eb('authority', beyond, authority),
        eb.and([eb('authority', '=', authority), eb(SELECTOR, beyond, after)]),
      ]),
    )
  }
  const order = isBackwards ? 'desc' : 'asc'
  const rows = await keys
    .selectAll()
    .orderBy('authority', order)
    .orderBy(SELECTOR, order)
    .limit(limit)
    .execute()
  if (isBackwards) rows.reverse()
  return {
    items: await listedViews(parts, rows),
    paging: tokenPaging({
      baseUrl: parts.baseUrl,
      path: LIST_PATH,
      place: { query: 'page' },
      tokens: pageTokens(rows, pivot),
      carry: { limit, signing_domain: signingDomain, selector },
    }),
    total_count: count,
  }
}

/** Links around a page; those of an empty page repeat its own position. */
function pageTokens(rows: readonly DkimKeyRow[], pivot: Pivot) {
  const positionOf = (row: DkimKeyRow | undefined): [string, string] | null =>
    row ? [row.authority, shownSelector(row)] : pivot.length === 3 ? [pivot[1], pivot[2]] : null
  const [before, after] = [positionOf(rows.at(0)), positionOf(rows.at(-1))]
  const first = tokenOf(['first'])
  return {
    first,
    last: tokenOf(['last']),
    previous: before ? tokenOf(['previous', ...before]) : first,
    next: after ? tokenOf(['next', ...after]) : first,
  }
}

/** Lists write `valid` in upper case, single keys in lower case (domain-keys.md, types). */
async function listedViews(
  parts: KeyRouteParts,
  keys: readonly DkimKeyRow[],
): Promise<Of<typeof LISTED_KEY>[]> {
  const authorities = [...new Set(keys.filter((key) => key.managed === 1).map((key) => key.authority))]
  const rows =
    authorities.length === 0
      ? []
      : await parts.store.db
          .selectFrom('sender_security')
          .select(['domain_name', 'sid'])
          .where('domain_name', 'in', authorities)
          .execute()
  const sids = new Map(rows.map((row) => [row.domain_name, row.sid]))
  return keys.map((key) => {
    const view = keyView(parts, key, sids.get(key.authority) ?? null)
    const valid = view.dns_record.valid === 'valid' ? 'VALID' : 'UNKNOWN'
    return { ...view, dns_record: { ...view.dns_record, valid } }
  })
}

function keyView({ targets }: KeyParts, key: DkimKeyRow, sid: string | null): Of<typeof DOMAIN_KEY> {
  const wanted = wantedKeyRecord(key, sid, targets)
  return {
    signing_domain: key.authority,
    selector: shownSelector(key),
    dns_record: { name: wanted.name, ...recordView(wanted, keyCheckOf(key, wanted), key.active === 1) },
  }
}
