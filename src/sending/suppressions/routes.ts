/** The four lists over HTTP (suppressions.md); each operation is written once and registered for every kind. */

import { described, either, message } from '../../base/shape.ts'
import type { Actor } from '../../people/accounts/audit-log.ts'
import { csvReply, jsonReply, prefersCsv } from '../../platform/http/answer/reply.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { BodyLimit } from '../../platform/http/request/body.ts'
import {
  fileParam,
  type InputOf,
  type Inputs,
  limitParam,
  parsedParam,
  textParam,
} from '../../platform/http/request/inputs.ts'
import { pageName, pageOf, pivotPaging } from '../../platform/http/request/paging.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Access } from '../../platform/http/rights/rights.ts'
import type { SuppressionKind } from '../../platform/store/schema.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import type { Domain } from '../domains/domain.ts'
import { type DomainDirectory, ownDomain } from '../domains/names/directory.ts'
import type { GivenRecord } from './given-records.ts'
import { csvRow, KINDS, type KindTraits } from './kinds.ts'
import type { PageQuery, Suppressions } from './service.ts'

interface SuppressionRouteParts {
  suppressions: Suppressions
  domains: DomainDirectory
  imports: {
    /** @throws BadRequest when the file has no usable header */
    submit(actor: Actor, domain: Domain, kind: SuppressionKind, file: Chunk): Promise<void>
  }
  baseUrl: string
}

const TAG = 'Suppressions'
const NO_PARAMS: Inputs = {}
const IMPORTING = 'file uploaded successfully for processing. standby...'
/** Each change commits its audit row with it. */
const IN_TRANSACTION = { by: 'operation' } as const
const PAGE_SIZE = 100
const PAGE_SIZE_MAX = 1000

/** A file of 25 MB (26,214,400 bytes) and the form around it. */
const IMPORT_LIMIT: BodyLimit = {
  bytes: 26 * 1024 * 1024,
  fileBytes: 25 * 1024 * 1024,
  message: 'file size exceeds 25MB limit',
}

const LIST_PARAMS = {
  limit: limitParam(PAGE_SIZE, PAGE_SIZE_MAX, { above: 'cut' }),
  page: parsedParam('`first`, `next`, `previous` (or `prev`), `last`', pageName),
  address: textParam('Pivot of next and previous'),
  p: textParam('The same as address, which some clients send'),
  term: textParam('Only those that begin with this text, in any case', { default: '' }),
}

export function suppressionRoutes(parts: SuppressionRouteParts): Operation[] {
  return KINDS.flatMap((traits) => operationsOf(traits, parts))
}

const operationsOf = <V, A, R>(traits: KindTraits<V, A, R>, parts: SuppressionRouteParts): Operation[] => [
  ...readOperations(traits, parts),
  ...changeOperations(traits, parts),
]

/** What the operations of one kind have in common. */
function commonOf<V, A, R>(traits: KindTraits<V, A, R>, domains: SuppressionRouteParts['domains']) {
  const { kind } = traits
  const name = kind[0]?.toUpperCase() + kind.slice(1)
  const listPath = { path: `/v3/{domain_name}/${kind}`, aliases: aliasesOf(traits, '') } as const
  const recordPath = {
    path: `/v3/{domain_name}/${kind}/{address}`,
    aliases: aliasesOf(traits, '/{address}'),
  } as const
  const common = (access: Access) => ({
    tag: TAG,
    auth: { area: traits.area, access },
    ...(access === 'write' && { audit: IN_TRANSACTION }),
  })
  const domainOf = (path: { domain_name: string }, caller: Caller) =>
    ownDomain(domains, caller, path.domain_name)
  return { name, listPath, recordPath, common, domainOf }
}

function readOperations<V, A, R>(traits: KindTraits<V, A, R>, parts: SuppressionRouteParts): Operation[] {
  const { suppressions } = parts
  const { kind, noun } = traits
  const { name, listPath, recordPath, common, domainOf } = commonOf(traits, parts.domains)
  return [
    operation({
      ...common('read'),
      ...listPath,
      method: 'GET',
      id: `list${name}`,
      summary: `List ${noun} of a domain by address`,
      description: 'With `Accept: text/csv` the whole list as a file that an import takes.',
      params: LIST_PARAMS,
      alsoCsv: true,
      answers: { 200: pageOf(traits.pageName, 'A page, by address', traits.record) },
      async handler({ input, path, caller, headers }) {
        const domain = await domainOf(path, caller)
        const page = pageQuery(input())
        if (prefersCsv(headers.accept)) {
          // One column for tags: the other is another spelling of it.
          const columns = traits.columns.all.filter((column) => column !== 'tag')
          return csvReply(`${kind}.csv`, columns, csvRows(suppressions, domain, kind, page.prefix, columns))
        }
        const records = await suppressions.list(domain, kind, page)
        const paging = pivotPaging({
          baseUrl: parts.baseUrl,
          path: `/v3/${encodeURIComponent(domain.name)}/${kind}`,
          pivotName: 'address',
          firstItem: records.at(0)?.address,
          lastItem: records.at(-1)?.address,
          pivot: page.pivot,
          carry: { limit: page.limit, term: page.prefix },
        })
        return { items: records.map(traits.view), paging }
      },
    }),
    operation({
      ...common('read'),
      ...recordPath,
      method: 'GET',
      id: `read${name}`,
      summary: `Read one of the ${noun}`,
      answers: { 200: traits.record, 404: traits.unknown },
      handler: async ({ path, caller }) =>
        traits.view(await suppressions.read(await domainOf(path, caller), kind, path.address)),
    }),
  ]
}

function changeOperations<V, A, R>(traits: KindTraits<V, A, R>, parts: SuppressionRouteParts): Operation[] {
  const { suppressions } = parts
  const { kind, noun } = traits
  const { name, listPath, recordPath, common, domainOf } = commonOf(traits, parts.domains)
  return [
    operation({
      ...common('write'),
      ...listPath,
      method: 'POST',
      id: `add${name}`,
      summary: `Add ${noun}: one as a form, up to 1000 as a JSON array`,
      params: traits.fields,
      answers: {
        200: either(
          'Added, or updated where they were there',
          traits.addedShape,
          message(traits.addedMany(2)),
        ),
      },
      async handler({ params, path, caller, remoteAddress, requestId }) {
        const domain = await domainOf(path, caller)
        const actor = { caller, remoteAddress, requestId }
        const document = params.json()
        if (document === undefined) {
          return traits.added(await suppressions.add(actor, domain, kind, formRecord(traits, params)))
        }
        const records = Array.isArray(document) ? document : [document]
        await suppressions.addMany(actor, domain, kind, records)
        return { message: traits.addedMany(records.length) }
      },
    }),
    operation({
      ...common('write'),
      path: `/v3/{domain_name}/${kind}/import`,
      aliases: aliasesOf(traits, '/import'),
      method: 'POST',
      id: `import${name}`,
      summary: `Import ${noun} from a CSV file, plain or gzip, in the background`,
      params: { file: fileParam('CSV with a header line', { required: true }) },
      multipartOnly: true,
      bodyLimit: IMPORT_LIMIT,
      answers: { 202: message(IMPORTING, 'Taken in; the rows follow') },
      beforeBody: async ({ path, caller }) => void (await domainOf(path, caller)),
      async handler({ input, path, caller, remoteAddress, requestId }) {
        const domain = await domainOf(path, caller)
        const { file } = input()
        await parts.imports.submit({ caller, remoteAddress, requestId }, domain, kind, file.keep())
        return jsonReply({ message: IMPORTING }, { status: 202 })
      },
    }),
    operation({
      ...common('write'),
      ...recordPath,
      method: 'DELETE',
      id: `remove${name}`,
      summary: `Remove one of the ${noun}`,
      params: kind === 'unsubscribes' ? { tag: textParam('Remove only this tag; default all') } : NO_PARAMS,
      answers: {
        200: described('Removed; counts from the next attempt on', traits.removedShape),
        404: traits.unknown,
      },
      async handler({ params, path, caller, remoteAddress, requestId }) {
        const domain = await domainOf(path, caller)
        const tag = kind === 'unsubscribes' ? params.text('tag') : undefined
        const actor = { caller, remoteAddress, requestId }
        return traits.removed(await suppressions.remove(actor, domain, kind, path.address, tag))
      },
    }),
    operation({
      ...common('write'),
      ...listPath,
      method: 'DELETE',
      id: `clear${name}`,
      summary: `Remove all ${noun} of a domain`,
      answers: { 200: message(traits.cleared, 'Removed') },
      async handler({ path, caller, remoteAddress, requestId }) {
        await suppressions.clear({ caller, remoteAddress, requestId }, await domainOf(path, caller), kind)
        return { message: traits.cleared }
      },
    }),
  ]
}

const aliasesOf = ({ aliases }: KindTraits, rest: string) =>
  aliases.map((alias) => `/v3/{domain_name}/${alias}${rest}`)

/** `next` and `previous` without a pivot are the first page. */
async function* csvRows(
  suppressions: Suppressions,
  domain: Domain,
  kind: SuppressionKind,
  prefix: string,
  columns: readonly string[],
): AsyncGenerator<string[]> {
  for (let pivot: string | undefined; ; ) {
    const records = await suppressions.list(domain, kind, {
      direction: 'forward',
      pivot,
      limit: PAGE_SIZE_MAX,
      prefix,
    })
    for (const record of records) yield csvRow(columns, record)
    if (records.length < PAGE_SIZE_MAX) return
    pivot = records.at(-1)?.address
  }
}

function pageQuery({ limit, page, address, p, term }: InputOf<typeof LIST_PARAMS>): Omit<PageQuery, 'now'> {
  const pivot = page === 'next' || page === 'previous' ? (address ?? p) : undefined
  const backward = page === 'last' || (page === 'previous' && pivot !== undefined)
  return { limit, pivot, direction: backward ? 'backward' : 'forward', prefix: term }
}

/** The fields of a form as a record: a repeatable field is a list. */
function formRecord({ fields }: KindTraits, params: Params): GivenRecord {
  return Object.fromEntries(
    Object.entries(fields).map(([name, { repeated }]) => [
      name,
      repeated ? params.texts(name) : params.text(name),
    ]),
  )
}
