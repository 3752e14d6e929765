/**
 * Page tokens: a page request in one path part of `A-Z a-z 0-9 - _`. They are authenticated, so that only tokens of
 * this installation are accepted. They do not expire: once retention has deleted their events, their pages are empty.
 */
import { readToken, type Sealer, signToken } from '../../../platform/store/secrets/sealing.ts'
import type { PageRequest } from './page-request.ts'

/** Authenticated, so that a token of another list or an older format is refused. */
const PURPOSE = 'event-page-1'
/** Characters; the server accepts path parts up to 4 KB. */
const TOKEN_MAX = 4000

export const sealPage = (sealer: Pick<Sealer, 'mac'>, page: PageRequest): string =>
  signToken(sealer, PURPOSE, Buffer.from(JSON.stringify(page)))

/** Null for anything that `sealPage` did not write with this secret. */
export function openPage(sealer: Pick<Sealer, 'mac'>, token: string): PageRequest | null {
  const body = readToken(sealer, PURPOSE, token, TOKEN_MAX)
  return body && (JSON.parse(body.toString()) as PageRequest)
}
