/**
 * The authors of a mail, the mailboxes of From (RFC 5322 §3.6.2), and whether the sender may name them (messages.md rule 5).
 * Receivers judge a mail by the domain in From (RFC 7489 §3.1), so none may be another account's, whatever set the field.
 *
 * Acceptance judges the From that all copies have. What variables or a template make of it is judged for each copy.
 */
import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { BadRequest, Forbidden, type ServiceError } from '../../base/process/errors.ts'
import { AddressSyntaxError, formatMailbox, type Mailbox } from '../../protocols/mime/address.ts'
import { parseAuthors } from '../../protocols/mime/loose-address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { isForeign } from '../../sending/domains/names/name-owner.ts'

/** Each of their domains costs look-ups. Mail that people wrote together has a few. */
const AUTHORS_MAX = 100

/** The authors in all texts. @throws AddressSyntaxError, also for more than 100 authors */
export function readAuthors(texts: string | readonly string[], read = parseAuthors): Mailbox[] {
  const authors = typeof texts === 'string' ? read(texts) : texts.flatMap((text) => read(text))
  if (authors.length > AUTHORS_MAX) throw new AddressSyntaxError(`More than ${AUTHORS_MAX} authors`)
  return authors
}

/** From as it is written: it reads in one way only. */
export const authorsText = (authors: readonly Mailbox[]): string => authors.map(formatMailbox).join(', ')

/** Several authors need a sender (RFC 5322 §3.6.2); so does a From of a domain that we do not send for. */
export const needsSender = (authors: readonly Mailbox[], domainName: string): boolean =>
  authors.length > 1 || authors.some((author) => author.domain !== domainName)

type Sender = Pick<Domain, 'accountId' | 'name' | 'verified' | 'type'>

/** The first of the authors' domains that belongs to another account; null: none does. Sync if all are known. */
export function foreignDomain(
  domains: Pick<DomainDirectory, 'byName'>,
  sender: Sender,
  authors: readonly Mailbox[],
): MaybePromise<string | null> {
  if (authors.every((author) => author.domain === sender.name)) return null
  return firstForeign(domains, sender, [...new Set(authors.map((author) => author.domain))])
}

/** One look-up after the other. */
function firstForeign(
  domains: Pick<DomainDirectory, 'byName'>,
  sender: Sender,
  names: readonly string[],
): MaybePromise<string | null> {
  const [name, ...others] = names
  if (name === undefined) return null
  if (name === sender.name) return firstForeign(domains, sender, others)
  return whenKnown(isForeign(domains, sender, name), (foreign) =>
    foreign ? name : firstForeign(domains, sender, others),
  )
}

export const foreignAuthor = (domain: string) =>
  new Forbidden(`From domain ${domain} belongs to another account`)

/** Why a mail with this From must not leave; null: it may. `read`: how the text is read. */
export function authorFault(
  domains: Pick<DomainDirectory, 'byName'>,
  sender: Sender,
  text: string,
  read = parseAuthors,
): MaybePromise<ServiceError | null> {
  let authors: Mailbox[]
  try {
    authors = readAuthors(text, read)
  } catch (error) {
    if (!(error instanceof AddressSyntaxError)) throw error
    return unreadableAuthor(error)
  }
  if (authors.length === 0) return unreadableAuthor()
  return whenKnown(foreignDomain(domains, sender, authors), (domain) =>
    domain === null ? null : foreignAuthor(domain),
  )
}

const unreadableAuthor = (cause?: unknown) => new BadRequest('cannot parse from address', { cause })
